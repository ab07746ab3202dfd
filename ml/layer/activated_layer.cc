#include "ml/layer/activated_layer.h"

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "ml/kernel/activation.h"
#include "ml/layer/field/activation_function.h"

namespace parasol {
namespace {

class ActivatedPass final : public LayerPass {
 public:
  // `input`: memory for what the activation is applied to; empty: it is applied
  // in place, and the gradient is a function of the output.
  ActivatedPass(Device& device, std::unique_ptr<LayerPass> layer,
                ActivationFunction function, int64_t rows, int64_t columns,
                Array<float> input)
      : device_(device),
        layer_(std::move(layer)),
        function_(function),
        rows_(rows),
        columns_(columns),
        input_(std::move(input)) {}

  absl::Status RunForward(const Forward& pass) override {
    Forward inner = pass;
    if (input_.size() > 0) inner.y = input_.data();
    RETURN_IF_ERROR(layer_->RunForward(inner));
    return Activate(device_, function_, {inner.y, rows_, columns_},
                    {pass.y, rows_, columns_});
  }

  absl::Status RunVariableGradients(const Backward& pass) override {
    const Backward inner = Inner(pass);
    RETURN_IF_ERROR(ActivationGradient(
        device_, function_, {inner.y, rows_, columns_},
        {pass.dy, rows_, columns_}, {pass.dy, rows_, columns_}));
    return layer_->RunVariableGradients(inner);
  }

  absl::Status RunInputGradients(const Backward& pass) override {
    return layer_->RunInputGradients(Inner(pass));
  }

  absl::Status RunUntrainedChanges(absl::Span<const float* const> variables,
                                   absl::Span<float* const> changes) override {
    return layer_->RunUntrainedChanges(variables, changes);
  }

 private:
  Backward Inner(const Backward& pass) const {
    Backward inner = pass;
    if (input_.size() > 0) inner.y = input_.data();
    return inner;
  }

  Device& device_;
  const std::unique_ptr<LayerPass> layer_;
  const ActivationFunction function_;
  const int64_t rows_;
  const int64_t columns_;
  const Array<float> input_;
};

class ActivatedLayer final : public Layer {
 public:
  ActivatedLayer(std::unique_ptr<const Layer> layer,
                 ActivationFunction function)
      : Layer(*layer), layer_(std::move(layer)), function_(function) {}

  bool SkipsGradients() const override { return layer_->SkipsGradients(); }
  bool IsRecordable() const override { return layer_->IsRecordable(); }
  absl::StatusOr<std::unique_ptr<LayerPass>> NewPass(
      Device& device, int64_t examples) const override {
    ASSIGN_OR_RETURN(std::unique_ptr<LayerPass> inner,
                     layer_->NewPass(device, examples));
    const int64_t size = examples * ElementsOf(output_shape());
    const int64_t columns = output_shape().empty() ? 1 : output_shape().back();
    Array<float> input;
    if (!IsGradientOfOutput(function_)) {
      ASSIGN_OR_RETURN(input, device.NewArray<float>(size));
    }
    return std::make_unique<ActivatedPass>(device, std::move(inner), function_,
                                           size / columns, columns,
                                           std::move(input));
  }

 private:
  const std::unique_ptr<const Layer> layer_;
  const ActivationFunction function_;
};

}  // namespace

std::unique_ptr<const Layer> WithActivation(std::unique_ptr<const Layer> layer,
                                            job::Activation activation) {
  const ActivationFunction function = FunctionOf(activation);
  if (function == ActivationFunction::kLinear) return layer;
  if (function == ActivationFunction::kRelu) {
    std::unique_ptr<const Layer> fused = layer->WithRelu();
    if (fused != nullptr) return fused;
  }
  return std::make_unique<ActivatedLayer>(std::move(layer), function);
}

}  // namespace parasol
