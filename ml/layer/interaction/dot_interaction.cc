#include "ml/layer/interaction/dot_interaction.h"

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/set_default.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "ml/kernel/interaction/dot_interaction.h"
#include "ml/layer/dense_inputs.h"

namespace parasol {
namespace {

// Largest number of fields: their pairs are counted in 32 bits elsewhere.
constexpr int64_t kMaxFields = int64_t{1} << 15;

class DotInteractionPass final : public LayerPass {
 public:
  DotInteractionPass(Device& device, const FieldPairs& shape)
      : device_(device), shape_(shape) {}

  absl::Status RunForward(const Forward& pass) override {
    return DotInteraction(device_, shape_, pass.x[0], pass.y);
  }

  absl::Status RunVariableGradients(const Backward& pass) override {
    return absl::OkStatus();
  }

  absl::Status RunInputGradients(const Backward& pass) override {
    if (pass.dx[0] == nullptr) return absl::OkStatus();
    return DotInteractionGradient(device_, shape_, pass.x[0], pass.dy,
                                  pass.dx[0]);
  }

 private:
  Device& device_;
  const FieldPairs shape_;
};

class DotInteractionLayer final : public Layer {
 public:
  // `shape`: of one example.
  explicit DotInteractionLayer(const FieldPairs& shape) : shape_(shape) {
    output_shape_ = {shape.count()};
  }

  bool KeepsOutputGradient() const override { return true; }
  bool IsRecordable() const override { return true; }
  absl::StatusOr<std::unique_ptr<LayerPass>> NewPass(
      Device& device, int64_t examples) const override {
    FieldPairs shape = shape_;
    shape.examples = examples;
    return std::make_unique<DotInteractionPass>(device, shape);
  }

 private:
  const FieldPairs shape_;
};

void FillDefaults(job::DotInteraction& spec) {
  PARASOL_SET_DEFAULT(spec, self_interaction, false);
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Layer>> MakeDotInteraction(
    const job::DotInteraction& spec, absl::Span<const LayerInput> inputs) {
  ASSIGN_OR_RETURN(const Shape shape, OnlyDenseInput(inputs));
  if (shape.size() != 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        "dot_interaction takes [fields, width], not ", ShapeText(shape)));
  }
  const FieldPairs pairs = {.examples = 1,
                            .fields = shape[0],
                            .width = shape[1],
                            .with_itself = spec.self_interaction()};
  if (shape[0] > kMaxFields || pairs.count() < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "dot_interaction: the input has ", shape[0], " fields, not in ",
        spec.self_interaction() ? 1 : 2, " to ", kMaxFields));
  }
  return std::make_unique<DotInteractionLayer>(pairs);
}

constinit const LayerKind kDotInteractionKind = {
    .field = job::Layer::kDotInteraction,
    .fill_defaults =
        [](job::Layer& layer) {
          FillDefaults(*layer.mutable_dot_interaction());
        },
    .make =
        [](const job::Layer& layer, absl::Span<const LayerInput> inputs,
           int64_t) {
          return MakeDotInteraction(layer.dot_interaction(), inputs);
        },
};

}  // namespace parasol
