#include "ml/layer/interaction/weighted_sum.h"

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "ml/kernel/interaction/weighted_sum.h"
#include "ml/layer/dense_inputs.h"

namespace parasol {
namespace {

class WeightedSumPass final : public LayerPass {
 public:
  WeightedSumPass(Device& device, const WeightedRows& shape)
      : device_(device), shape_(shape) {}

  absl::Status RunForward(const Forward& pass) override {
    return WeightedSum(device_, shape_, pass.x[0], pass.x[1], pass.y);
  }

  absl::Status RunVariableGradients(const Backward& pass) override {
    return absl::OkStatus();
  }

  absl::Status RunInputGradients(const Backward& pass) override {
    return WeightedSumGradients(device_, shape_, pass.x[0], pass.x[1], pass.dy,
                                pass.dx[0], pass.dx[1]);
  }

 private:
  Device& device_;
  const WeightedRows shape_;
};

class WeightedSumLayer final : public Layer {
 public:
  // `shape`: of one example.
  explicit WeightedSumLayer(const WeightedRows& shape) : shape_(shape) {
    output_shape_ = {shape.width};
  }

  bool KeepsOutputGradient() const override { return true; }
  bool IsRecordable() const override { return true; }
  absl::StatusOr<std::unique_ptr<LayerPass>> NewPass(
      Device& device, int64_t examples) const override {
    WeightedRows shape = shape_;
    shape.examples = examples;
    return std::make_unique<WeightedSumPass>(device, shape);
  }

 private:
  const WeightedRows shape_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<const Layer>> MakeWeightedSum(
    absl::Span<const LayerInput> inputs) {
  RETURN_IF_ERROR(CheckDenseInputs(inputs));
  if (inputs.size() != 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        "weighted_sum has two inputs, the weights [n] and the rows [n, width], "
        "not ",
        inputs.size()));
  }
  const Shape& weights = inputs[0].shape;
  const Shape& rows = inputs[1].shape;
  if (weights.size() != 1 || rows.size() != 2 || weights[0] != rows[0]) {
    return absl::InvalidArgumentError(absl::StrCat(
        "weighted_sum takes weights [n] and rows [n, width], not [",
        absl::StrJoin(weights, ", "), "] and [", absl::StrJoin(rows, ", "),
        "]"));
  }
  return std::make_unique<WeightedSumLayer>(
      WeightedRows{.examples = 1, .count = rows[0], .width = rows[1]});
}

constinit const LayerKind kWeightedSumKind = {
    .field = job::Layer::kWeightedSum,
    .make = [](const job::Layer&, absl::Span<const LayerInput> inputs,
               int64_t) { return MakeWeightedSum(inputs); },
};

}  // namespace parasol
