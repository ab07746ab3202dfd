#include "ml/layer/activation.h"

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "ml/kernel/activation.h"
#include "ml/kernel/relu.h"
#include "ml/layer/dense_inputs.h"
#include "ml/layer/field/activation_function.h"

namespace parasol {
namespace {

class ActivationPass final : public LayerPass {
 public:
  ActivationPass(Device& device, ActivationFunction function, int64_t rows,
                 int64_t columns)
      : device_(device), function_(function), rows_(rows), columns_(columns) {}

  absl::Status RunForward(const Forward& pass) override {
    if (function_ == ActivationFunction::kRelu) {
      return Relu(device_, pass.x[0], rows_ * columns_, pass.y);
    }
    return Activate(device_, function_, {pass.x[0], rows_, columns_},
                    {pass.y, rows_, columns_});
  }
  absl::Status RunVariableGradients(const Backward& pass) override {
    return absl::OkStatus();
  }
  absl::Status RunInputGradients(const Backward& pass) override {
    if (pass.dx[0] == nullptr) return absl::OkStatus();
    if (function_ == ActivationFunction::kRelu) {
      return ReluGradient(device_, pass.y, pass.dy, rows_ * columns_,
                          pass.dx[0]);
    }
    const float* const at = IsGradientOfOutput(function_) ? pass.y : pass.x[0];
    return ActivationGradient(device_, function_, {at, rows_, columns_},
                              {pass.dy, rows_, columns_},
                              {pass.dx[0], rows_, columns_});
  }

 private:
  Device& device_;
  const ActivationFunction function_;
  const int64_t rows_;
  const int64_t columns_;
};

class ActivationLayer final : public Layer {
 public:
  ActivationLayer(ActivationFunction function, Shape shape)
      : function_(function) {
    output_shape_ = std::move(shape);
  }

  bool IsView() const override {
    return function_ == ActivationFunction::kLinear;
  }
  bool IsRelu() const override {
    return function_ == ActivationFunction::kRelu;
  }
  bool KeepsOutputGradient() const override { return true; }
  bool IsRecordable() const override { return true; }
  Bfloat16Use bfloat16_use() const override {
    return IsRelu() ? Bfloat16Use::kIfInputsAre : Bfloat16Use::kNever;
  }
  absl::StatusOr<std::unique_ptr<LayerPass>> NewPass(
      Device& device, int64_t examples) const override {
    const int64_t columns = output_shape().empty() ? 1 : output_shape().back();
    return std::make_unique<ActivationPass>(
        device, function_, examples * ElementsOf(output_shape()) / columns,
        columns);
  }

 private:
  const ActivationFunction function_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<const Layer>> MakeActivation(
    job::Activation activation, absl::Span<const LayerInput> inputs) {
  ASSIGN_OR_RETURN(Shape shape, OnlyDenseInput(inputs));
  return std::make_unique<ActivationLayer>(FunctionOf(activation),
                                           std::move(shape));
}

constinit const LayerKind kActivationKind = {
    .field = job::Layer::kActivation,
    .make = [](const job::Layer& layer, absl::Span<const LayerInput> inputs,
               int64_t) { return MakeActivation(layer.activation(), inputs); },
};

}  // namespace parasol
