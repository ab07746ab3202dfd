#include "ml/layer/interaction/factorization_machine.h"

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "ml/kernel/interaction/factorization_machine.h"
#include "ml/layer/dense_inputs.h"

namespace parasol {
namespace {

class FactorizationMachinePass final : public LayerPass {
 public:
  FactorizationMachinePass(Device& device, const Interaction& shape)
      : device_(device), shape_(shape) {}

  absl::Status RunForward(const Forward& pass) override {
    return FactorizationMachine(device_, shape_, pass.x[0], pass.y);
  }

  absl::Status RunVariableGradients(const Backward& pass) override {
    return absl::OkStatus();
  }

  absl::Status RunInputGradients(const Backward& pass) override {
    if (pass.dx[0] == nullptr) return absl::OkStatus();
    return FactorizationMachineGradient(device_, shape_, pass.x[0], pass.dy,
                                        pass.dx[0]);
  }

 private:
  Device& device_;
  const Interaction shape_;
};

class FactorizationMachineLayer final : public Layer {
 public:
  FactorizationMachineLayer(int64_t fields, int64_t width)
      : fields_(fields), width_(width) {
    output_shape_ = {1};
  }

  bool KeepsOutputGradient() const override { return true; }
  bool IsRecordable() const override { return true; }
  absl::StatusOr<std::unique_ptr<LayerPass>> NewPass(
      Device& device, int64_t examples) const override {
    return std::make_unique<FactorizationMachinePass>(
        device, Interaction{examples, fields_, width_});
  }

 private:
  const int64_t fields_;
  const int64_t width_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<const Layer>> MakeFactorizationMachine(
    absl::Span<const LayerInput> inputs) {
  ASSIGN_OR_RETURN(const Shape shape, OnlyDenseInput(inputs));
  if (shape.size() != 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        "factorization_machine takes [fields, width], not ", ShapeText(shape)));
  }
  return std::make_unique<FactorizationMachineLayer>(shape[0], shape[1]);
}

constinit const LayerKind kFactorizationMachineKind = {
    .field = job::Layer::kFactorizationMachine,
    .make = [](const job::Layer&, absl::Span<const LayerInput> inputs,
               int64_t) { return MakeFactorizationMachine(inputs); },
};

}  // namespace parasol
