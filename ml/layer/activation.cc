#include "ml/layer/activation.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ml/kernel/relu.h"
#include "ml/layer/dense_inputs.h"

namespace parasol {
namespace {

class ReluPass final : public LayerPass {
 public:
  ReluPass(Device& device, int64_t elements)
      : device_(device), elements_(elements) {}

  absl::Status RunForward(const Forward& pass) override {
    return Relu(device_, {pass.x[0], 1, elements_}, {pass.y, 1, elements_});
  }
  absl::Status RunVariableGradients(const Backward&) override {
    return absl::OkStatus();
  }
  absl::Status RunInputGradients(const Backward& pass) override {
    if (pass.dx[0] == nullptr) return absl::OkStatus();
    return ReluGradient(device_, {pass.y, 1, elements_},
                        {pass.dy, 1, elements_}, {pass.dx[0], 1, elements_});
  }

 private:
  Device& device_;
  const int64_t elements_;
};

class ActivationLayer final : public Layer {
 public:
  ActivationLayer(job::Activation activation, Shape shape)
      : activation_(activation) {
    output_shape_ = std::move(shape);
  }

  bool IsView() const override {
    return activation_ == job::ACTIVATION_UNSPECIFIED;
  }
  bool KeepsOutputGradient() const override { return true; }
  absl::StatusOr<std::unique_ptr<LayerPass>> NewPass(
      Device& device, int64_t examples) const override {
    return std::make_unique<ReluPass>(device,
                                      examples * ElementsOf(output_shape_));
  }

 private:
  const job::Activation activation_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<const Layer>> MakeActivation(
    job::Activation activation, absl::Span<const LayerInput> inputs) {
  ASSIGN_OR_RETURN(Shape shape, OnlyDenseInput(inputs));
  if (activation != job::ACTIVATION_UNSPECIFIED && activation != job::RELU) {
    return absl::InvalidArgumentError(absl::StrCat(
        "activation ", job::Activation_Name(activation), " is not known"));
  }
  return std::make_unique<ActivationLayer>(activation, std::move(shape));
}

}  // namespace parasol
