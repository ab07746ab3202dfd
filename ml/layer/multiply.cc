#include "ml/layer/multiply.h"

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "ml/kernel/multiply.h"
#include "ml/layer/dense_inputs.h"

namespace parasol {
namespace {

class MultiplyPass final : public LayerPass {
 public:
  MultiplyPass(Device& device, int64_t size) : device_(device), size_(size) {}

  absl::Status RunForward(const Forward& pass) override {
    const float* product = pass.x[0];
    for (size_t i = 1; i < pass.x.size(); ++i) {
      RETURN_IF_ERROR(Times(product, pass.x[i], pass.y));
      product = pass.y;
    }
    return absl::OkStatus();
  }

  absl::Status RunVariableGradients(const Backward& pass) override {
    return absl::OkStatus();
  }

  // Each input's gradient is dy times all other inputs, which may be 0: no
  // quotient of y gives it.
  absl::Status RunInputGradients(const Backward& pass) override {
    for (size_t i = 0; i < pass.dx.size(); ++i) {
      if (pass.dx[i] == nullptr) continue;
      const float* product = pass.dy;
      for (size_t other = 0; other < pass.x.size(); ++other) {
        if (other == i) continue;
        RETURN_IF_ERROR(Times(product, pass.x[other], pass.dx[i]));
        product = pass.dx[i];
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Times(const float* a, const float* b, float* y) {
    return Multiply(device_, a, b, /*addend=*/nullptr, size_, y);
  }

  Device& device_;
  const int64_t size_;
};

class MultiplyLayer final : public Layer {
 public:
  explicit MultiplyLayer(const Shape& shape) { output_shape_ = shape; }

  bool KeepsOutputGradient() const override { return true; }
  bool IsRecordable() const override { return true; }
  absl::StatusOr<std::unique_ptr<LayerPass>> NewPass(
      Device& device, int64_t examples) const override {
    return std::make_unique<MultiplyPass>(
        device, examples * ElementsOf(output_shape()));
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<const Layer>> MakeMultiply(
    absl::Span<const LayerInput> inputs) {
  RETURN_IF_ERROR(CheckDenseInputs(inputs));
  if (inputs.size() < 2) {
    return absl::InvalidArgumentError(
        "multiply needs two inputs or more, not 1");
  }
  const Shape& shape = inputs[0].shape;
  for (const LayerInput& input : inputs) {
    if (input.shape == shape) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("inputs of shapes ", ShapeText(shape), " and ",
                     ShapeText(input.shape), " cannot be multiplied"));
  }
  return std::make_unique<MultiplyLayer>(shape);
}

constinit const LayerKind kMultiplyKind = {
    .field = job::Layer::kMultiply,
    .make = [](const job::Layer&, absl::Span<const LayerInput> inputs,
               int64_t) { return MakeMultiply(inputs); },
};

}  // namespace parasol
