#include "ml/layer/conv2d.h"

#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/field_checks.h"
#include "base/status_macros.h"
#include "ml/kernel/image/convolution.h"
#include "ml/kernel/relu.h"
#include "ml/layer/activated_layer.h"
#include "ml/layer/dense_inputs.h"
#include "ml/layer/field/affine_fields.h"
#include "ml/layer/image_window.h"

namespace parasol {
namespace {

// Largest number of elements of the kernel: CUDA kernels count in int.
constexpr int64_t kMaxElements = std::numeric_limits<int32_t>::max();

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
      RETURN_IF_ERROR(
          ReluGradient(device_, pass.y, pass.dy, shape_.y_size(), pass.dy));
    }
    if (pass.gradients[0] == nullptr) return absl::OkStatus();
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

class Conv2DLayer : public Layer {
 public:
  // `spec` has its defaults filled in.
  Conv2DLayer(const job::Conv2D& spec, const ImageWindow& window,
              Epilogue epilogue)
      : spec_(spec), window_(window), epilogue_(epilogue) {
    output_shape_ = window.OutputShape(spec.filters());
    variables_.push_back({.name = "kernel",
                          .shape = {window.height.window, window.width.window,
                                    window.channels, spec.filters()},
                          .initializer = spec.kernel_initializer()});
    variable_l2_.push_back(spec.kernel_l2());
    if (!spec.use_bias()) return;
    variables_.push_back({.name = "bias",
                          .shape = {spec.filters()},
                          .initializer = spec.bias_initializer()});
    variable_l2_.push_back(spec.bias_l2());
  }

  std::unique_ptr<const Layer> WithRelu() const override {
    return std::make_unique<Conv2DLayer>(spec_, window_, Epilogue::kRelu);
  }

  bool KeepsOutputGradient() const override {
    return epilogue_ == Epilogue::kNone;
  }
  bool SkipsGradients() const override { return true; }
  bool IsRecordable() const override { return true; }
  Bfloat16Use bfloat16_use() const override { return Bfloat16Use::kAlways; }

  absl::StatusOr<std::unique_ptr<LayerPass>> NewPass(
      Device& device, int64_t examples) const override {
    const ConvolutionShape shape = {.examples = examples,
                                    .height = window_.height,
                                    .width = window_.width,
                                    .channels = window_.channels,
                                    .filters = spec_.filters()};
    ASSIGN_OR_RETURN(std::unique_ptr<Convolution> convolution,
                     Convolution::Create(device, shape,
                                         {.has_bias = spec_.use_bias(),
                                          .epilogue = epilogue_}));
    return std::make_unique<Conv2DPass>(device, shape, spec_.use_bias(),
                                        epilogue_, std::move(convolution));
  }

 private:
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

void FillDefaults(job::Conv2D& spec) {
  FillAffine(spec);
  FillPadding(spec);
  if (spec.stride().empty()) spec.add_stride(1);
}

absl::Status CheckRanges(const std::string& path, const job::Conv2D& spec) {
  const std::string filters = absl::StrCat(path, ".filters");
  if (!spec.has_filters()) return Missing(filters);
  RETURN_IF_ERROR(RequireInRange(filters, spec.filters(), 1, kMaxInt));
  RETURN_IF_ERROR(CheckWindow(path, spec));
  return CheckProduct(path, spec);
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Layer>> MakeConv2D(
    const job::Conv2D& spec, absl::Span<const LayerInput> inputs) {
  ASSIGN_OR_RETURN(const Shape image, OnlyDenseInput(inputs));
  job::Conv2D filled = spec;
  FillDefaults(filled);
  ASSIGN_OR_RETURN(const ImageWindow window,
                   FitImageWindow(image, filled.kernel_size(), filled.stride(),
                                  filled.padding()));
  RETURN_IF_ERROR(CheckKernel(window, filled.filters()));
  return WithActivation(
      std::make_unique<Conv2DLayer>(filled, window, Epilogue::kNone),
      filled.activation());
}

constinit const LayerKind kConv2DKind = {
    .field = job::Layer::kConv2D,
    .fill_defaults =
        [](job::Layer& layer) { FillDefaults(*layer.mutable_conv2d()); },
    .check =
        [](const std::string& path, const job::Layer& layer) {
          return CheckRanges(path, layer.conv2d());
        },
    .make = [](const job::Layer& layer, absl::Span<const LayerInput> inputs,
               int64_t) { return MakeConv2D(layer.conv2d(), inputs); },
};

}  // namespace parasol
