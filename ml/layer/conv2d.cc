#include "ml/layer/conv2d.h"

#include <cstdint>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ml/kernel/image/convolution.h"
#include "ml/kernel/relu.h"
#include "ml/layer/activated_layer.h"
#include "ml/layer/dense_inputs.h"
#include "ml/layer/image_window.h"

namespace parasol {
namespace {

// Largest number of elements of the kernel: cuBLAS counts in int.
constexpr int64_t kMaxElements = std::numeric_limits<int32_t>::max();
constexpr int64_t kUnitStride[] = {1};

class Conv2DPass : public LayerPass {
 public:
  Conv2DPass(Device& device, const ConvolutionShape& shape, bool has_bias,
             Epilogue epilogue, std::unique_ptr<Convolution> convolution)
      : device_(device),
        shape_(shape),
        has_bias_(has_bias),
        epilogue_(epilogue),
        convolution_(std::move(convolution)) {}

  absl::Status RunForward(const Forward& pass) override {
    return convolution_->Forward(pass.x[0], pass.variables[0],
                                 has_bias_ ? pass.variables[1] : nullptr,
                                 pass.y);
  }

  absl::Status RunVariableGradients(const Backward& pass) override {
    if (epilogue_ == Epilogue::kRelu) {
      const MutableMatrixView dy = {pass.dy, shape_.outputs(), shape_.filters};
      RETURN_IF_ERROR(
          ReluGradient(device_, {pass.y, dy.rows, dy.columns}, dy, dy));
    }
    return convolution_->VariableGradients(
        pass.x[0], pass.dy, pass.gradients[0],
        has_bias_ ? pass.gradients[1] : nullptr);
  }

  absl::Status RunInputGradients(const Backward& pass) override {
    if (pass.dx[0] == nullptr) return absl::OkStatus();
    return convolution_->InputGradient(pass.dy, pass.variables[0], pass.dx[0]);
  }

 private:
  Device& device_;
  const ConvolutionShape shape_;
  const bool has_bias_;
  const Epilogue epilogue_;
  const std::unique_ptr<Convolution> convolution_;
};

VariableSpec KernelOf(const job::Conv2D& spec, const ImageWindow& window) {
  VariableSpec kernel = {.name = "kernel",
                         .shape = {window.height.window, window.width.window,
                                   window.channels, spec.filters()},
                         .initializer = spec.kernel_initializer()};
  if (kernel.initializer.kind_case() == job::Initializer::KIND_NOT_SET) {
    kernel.initializer.mutable_glorot_uniform();
  }
  return kernel;
}

VariableSpec BiasOf(const job::Conv2D& spec) {
  VariableSpec bias = {.name = "bias",
                       .shape = {spec.filters()},
                       .initializer = spec.bias_initializer()};
  if (bias.initializer.kind_case() == job::Initializer::KIND_NOT_SET) {
    bias.initializer.mutable_zeros();
  }
  return bias;
}

class Conv2DLayer : public Layer {
 public:
  Conv2DLayer(const job::Conv2D& spec, const ImageWindow& window,
              Epilogue epilogue)
      : spec_(spec), window_(window), epilogue_(epilogue) {
    output_shape_ = window.OutputShape(spec.filters());
    variables_.push_back(KernelOf(spec, window));
    variable_l2_.push_back(spec.kernel_l2());
    if (!HasBias()) return;
    variables_.push_back(BiasOf(spec));
    variable_l2_.push_back(spec.bias_l2());
  }

  std::unique_ptr<const Layer> WithRelu() const override {
    return std::make_unique<Conv2DLayer>(spec_, window_, Epilogue::kRelu);
  }

  bool KeepsOutputGradient() const override {
    return epilogue_ == Epilogue::kNone;
  }
  bool IsRecordable() const override { return true; }

  absl::StatusOr<std::unique_ptr<LayerPass>> NewPass(
      Device& device, int64_t examples) const override {
    const ConvolutionShape shape = {.examples = examples,
                                    .height = window_.height,
                                    .width = window_.width,
                                    .channels = window_.channels,
                                    .filters = spec_.filters()};
    ASSIGN_OR_RETURN(
        std::unique_ptr<Convolution> convolution,
        Convolution::Create(device, shape,
                            {.has_bias = HasBias(), .epilogue = epilogue_}));
    return std::make_unique<Conv2DPass>(device, shape, HasBias(), epilogue_,
                                        std::move(convolution));
  }

 private:
  bool HasBias() const { return !spec_.has_use_bias() || spec_.use_bias(); }

  const job::Conv2D spec_;
  const ImageWindow window_;
  const Epilogue epilogue_;
};

absl::Status CheckKernel(const ImageWindow& window, int64_t filters) {
  const int64_t window_size = window.height.window * window.width.window;
  if (filters >= 1 && window.channels <= kMaxElements / window_size &&
      filters <= kMaxElements / (window_size * window.channels)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(filters, " filters of ", window.height.window, "x",
                   window.width.window, "x", window.channels,
                   " elements: together they must be 1 to ", kMaxElements));
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Layer>> MakeConv2D(
    const job::Conv2D& spec, absl::Span<const LayerInput> inputs) {
  ASSIGN_OR_RETURN(const Shape image, OnlyDenseInput(inputs));
  ASSIGN_OR_RETURN(const ImageWindow window,
                   FitImageWindow(image, spec.kernel_size(), spec.stride(),
                                  kUnitStride, spec.padding()));
  RETURN_IF_ERROR(CheckKernel(window, spec.filters()));
  return WithActivation(
      std::make_unique<Conv2DLayer>(spec, window, Epilogue::kNone),
      spec.activation());
}

}  // namespace parasol
