#include "ml/layer/convolution/conv2d_transpose.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/field_checks.h"
#include "base/status_macros.h"
#include "ml/kernel/image/convolution.h"
#include "ml/layer/activated_layer.h"
#include "ml/layer/convolution/bias_and_relu.h"
#include "ml/layer/convolution/transposed_window.h"
#include "ml/layer/dense_inputs.h"
#include "ml/layer/field/affine_fields.h"

namespace parasol {
namespace {

// Largest number of elements of the kernel, and of an output: CUDA kernels
// count in int.
constexpr int64_t kMaxElements = std::numeric_limits<int32_t>::max();

class Conv2DTransposePass final : public LayerPass {
 public:
  Conv2DTransposePass(Device& device, const BiasAndRelu& output,
                      std::unique_ptr<Convolution> convolution)
      : device_(device),
        output_(output),
        convolution_(std::move(convolution)) {}

  absl::Status RunForward(const Forward& pass) override {
    RETURN_IF_ERROR(
        convolution_->InputGradient(pass.x[0], pass.variables[0], pass.y));
    return output_.Apply(device_, pass.variables.back(), pass.y);
  }

  absl::Status RunVariableGradients(const Backward& pass) override {
    RETURN_IF_ERROR(
        output_.Gradient(device_, pass.y, pass.dy, pass.gradients.back()));
    return convolution_->VariableGradients(pass.dy, pass.x[0],
                                           pass.gradients[0], nullptr);
  }

  absl::Status RunInputGradients(const Backward& pass) override {
    if (pass.dx[0] == nullptr) return absl::OkStatus();
    return convolution_->Forward(pass.dy, pass.variables[0], nullptr,
                                 pass.dx[0]);
  }

 private:
  Device& device_;
  const BiasAndRelu output_;
  const std::unique_ptr<Convolution> convolution_;
};

class Conv2DTransposeLayer final : public Layer {
 public:
  // `spec` has its defaults filled in. `window` slides over the output.
  Conv2DTransposeLayer(const job::Conv2DTranspose& spec,
                       const ImageWindow& window, Epilogue epilogue)
      : spec_(spec), window_(window), epilogue_(epilogue) {
    output_shape_ = {window.height.input, window.width.input, spec.filters()};
    variables_.push_back({.name = "kernel",
                          .shape = {window.height.window, window.width.window,
                                    spec.filters(), window.channels},
                          .initializer = spec.kernel_initializer()});
    variable_l2_.push_back(spec.kernel_l2());
    if (!spec.use_bias()) return;
    variables_.push_back({.name = "bias",
                          .shape = {spec.filters()},
                          .initializer = spec.bias_initializer()});
    variable_l2_.push_back(spec.bias_l2());
  }

  std::unique_ptr<const Layer> WithRelu() const override {
    return std::make_unique<Conv2DTransposeLayer>(spec_, window_,
                                                  Epilogue::kRelu);
  }
  bool KeepsOutputGradient() const override {
    return epilogue_ == Epilogue::kNone;
  }
  bool IsRecordable() const override { return true; }

  absl::StatusOr<std::unique_ptr<LayerPass>> NewPass(
      Device& device, int64_t examples) const override {
    // The convolution from this layer's output to its input.
    const ConvolutionShape shape = {.examples = examples,
                                    .height = window_.height,
                                    .width = window_.width,
                                    .channels = spec_.filters(),
                                    .filters = window_.channels};
    ASSIGN_OR_RETURN(std::unique_ptr<Convolution> convolution,
                     Convolution::Create(device, shape, {}));
    return std::make_unique<Conv2DTransposePass>(
        device,
        BiasAndRelu{.rows = shape.x_size() / shape.channels,
                    .columns = shape.channels,
                    .has_bias = spec_.use_bias(),
                    .epilogue = epilogue_},
        std::move(convolution));
  }

 private:
  const job::Conv2DTranspose spec_;
  const ImageWindow window_;
  const Epilogue epilogue_;
};

absl::Status CheckSizes(const ImageWindow& window, int64_t filters) {
  const int64_t window_size = window.height.window * window.width.window;
  const int64_t pixels = window.height.input * window.width.input;
  if (filters >= 1 && window.channels <= kMaxElements / window_size &&
      filters <= kMaxElements / (window_size * window.channels) &&
      filters <= kMaxElements / pixels) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      filters, " filters of ", window.height.window, "x", window.width.window,
      "x", window.channels, " elements for images of ", window.height.input,
      "x", window.width.input, ": together they must be 1 to ", kMaxElements));
}

void FillDefaults(job::Conv2DTranspose& spec) {
  FillAffine(spec);
  FillPadding(spec);
  if (spec.stride().empty()) spec.add_stride(1);
}

absl::Status CheckRanges(const std::string& path,
                         const job::Conv2DTranspose& spec) {
  const std::string filters = absl::StrCat(path, ".filters");
  if (!spec.has_filters()) return Missing(filters);
  RETURN_IF_ERROR(RequireInRange(filters, spec.filters(), 1, kMaxInt));
  RETURN_IF_ERROR(CheckWindow(path, spec));
  return CheckProduct(path, spec);
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Layer>> MakeConv2DTranspose(
    const job::Conv2DTranspose& spec, absl::Span<const LayerInput> inputs) {
  ASSIGN_OR_RETURN(const Shape image, OnlyDenseInput(inputs));
  job::Conv2DTranspose filled = spec;
  FillDefaults(filled);
  ASSIGN_OR_RETURN(const ImageWindow window,
                   FitTransposedWindow(image, filled.kernel_size(),
                                       filled.stride(), filled.padding()));
  RETURN_IF_ERROR(CheckSizes(window, filled.filters()));
  return WithActivation(
      std::make_unique<Conv2DTransposeLayer>(filled, window, Epilogue::kNone),
      filled.activation());
}

constinit const LayerKind kConv2DTransposeKind = {
    .field = job::Layer::kConv2DTranspose,
    .fill_defaults =
        [](job::Layer& layer) {
          FillDefaults(*layer.mutable_conv2d_transpose());
        },
    .check =
        [](const std::string& path, const job::Layer& layer) {
          return CheckRanges(path, layer.conv2d_transpose());
        },
    .make =
        [](const job::Layer& layer, absl::Span<const LayerInput> inputs,
           int64_t) {
          return MakeConv2DTranspose(layer.conv2d_transpose(), inputs);
        },
};

}  // namespace parasol
