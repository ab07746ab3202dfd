#include "ml/model/layer.h"

#include <optional>

#include "base/status_macros.h"
#include "ml/kernel/affine.h"
#include "ml/kernel/relu.h"

namespace parasol {
namespace {

class DenseLayer : public Layer {
 public:
  explicit DenseLayer(const ResolvedLayer& layer)
      : inputs_(layer.inputs),
        outputs_(layer.outputs),
        epilogue_(layer.activation == job::RELU ? Epilogue::kRelu
                                                : Epilogue::kNone),
        kernel_(layer.first_variable),
        has_bias_(layer.has_bias) {
    variables_.push_back(kernel_);
    if (has_bias_) variables_.push_back(Bias());
  }

  int64_t outputs() const override { return outputs_; }
  absl::Span<const size_t> variables() const override { return variables_; }

  absl::Status Forward(Device& device, absl::Span<const float* const> values,
                       MatrixView x, MutableMatrixView y) const override {
    return Affine(device, x, Kernel(values),
                  has_bias_ ? values[Bias()] : nullptr, epilogue_, y);
  }

  absl::Status VariableGradients(
      Device& device, MatrixView x, MatrixView y, MutableMatrixView dy,
      absl::Span<float* const> gradients) const override {
    if (epilogue_ == Epilogue::kRelu) {
      RETURN_IF_ERROR(ReluGradient(device, y, dy, dy));
    }
    return AffineVariableGradients(device, x, dy,
                                   {gradients[kernel_], inputs_, outputs_},
                                   has_bias_ ? gradients[Bias()] : nullptr);
  }

  absl::Status InputGradient(Device& device,
                             absl::Span<const float* const> values,
                             MatrixView y, MatrixView dy,
                             MutableMatrixView dx) const override {
    return AffineInputGradient(device, dy, Kernel(values), dx);
  }

 private:
  size_t Bias() const { return kernel_ + 1; }
  MatrixView Kernel(absl::Span<const float* const> values) const {
    return {values[kernel_], inputs_, outputs_};
  }

  const int64_t inputs_;
  const int64_t outputs_;
  const Epilogue epilogue_;
  const size_t kernel_;
  const bool has_bias_;
  std::vector<size_t> variables_;
};

class ReluLayer : public Layer {
 public:
  explicit ReluLayer(const ResolvedLayer& layer) : outputs_(layer.outputs) {}

  int64_t outputs() const override { return outputs_; }
  absl::Span<const size_t> variables() const override { return {}; }

  absl::Status Forward(Device& device, absl::Span<const float* const> values,
                       MatrixView x, MutableMatrixView y) const override {
    return Relu(device, x, y);
  }

  absl::Status VariableGradients(
      Device& device, MatrixView x, MatrixView y, MutableMatrixView dy,
      absl::Span<float* const> gradients) const override {
    return absl::OkStatus();
  }

  absl::Status InputGradient(Device& device,
                             absl::Span<const float* const> values,
                             MatrixView y, MatrixView dy,
                             MutableMatrixView dx) const override {
    return ReluGradient(device, y, dy, dx);
  }

 private:
  const int64_t outputs_;
};

}  // namespace

std::vector<std::unique_ptr<const Layer>> MakeLayers(
    const ResolvedModel& model) {
  std::vector<std::unique_ptr<const Layer>> layers;
  // The dense layer that is last in `layers`, if one is.
  std::optional<ResolvedLayer> dense;
  for (const ResolvedLayer& layer : model.layers) {
    if (layer.kind == ResolvedLayer::Kind::kDense) {
      dense = layer;
      layers.push_back(std::make_unique<DenseLayer>(*dense));
    } else if (layer.activation == job::RELU && dense.has_value()) {
      dense->activation = job::RELU;
      layers.back() = std::make_unique<DenseLayer>(*dense);
    } else if (layer.activation == job::RELU) {
      layers.push_back(std::make_unique<ReluLayer>(layer));
    }
  }
  return layers;
}

}  // namespace parasol
