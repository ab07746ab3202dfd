#include "ml/layer/convolution/depthwise_conv2d.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "ml/kernel/image/depthwise.h"
#include "ml/layer/activated_layer.h"
#include "ml/layer/convolution/bias_and_relu.h"
#include "ml/layer/convolution/dilated_window.h"
#include "ml/layer/dense_inputs.h"

namespace parasol {
namespace {

class DepthwiseConv2DPass final : public LayerPass {
 public:
  DepthwiseConv2DPass(Device& device, const DepthwiseShape& shape,
                      const BiasAndRelu& output)
      : device_(device), shape_(shape), output_(output) {}

  absl::Status RunForward(const Forward& pass) override {
    RETURN_IF_ERROR(
        Depthwise(device_, shape_, pass.x[0], pass.variables[0], pass.y));
    return output_.Apply(device_, pass.variables.back(), pass.y);
  }

  absl::Status RunVariableGradients(const Backward& pass) override {
    RETURN_IF_ERROR(
        output_.Gradient(device_, pass.y, pass.dy, pass.gradients.back()));
    return DepthwiseKernelGradient(device_, shape_, pass.x[0], pass.dy,
                                   pass.gradients[0]);
  }

  absl::Status RunInputGradients(const Backward& pass) override {
    if (pass.dx[0] == nullptr) return absl::OkStatus();
    return DepthwiseInputGradient(device_, shape_, pass.dy, pass.variables[0],
                                  pass.dx[0]);
  }

 private:
  Device& device_;
  const DepthwiseShape shape_;
  const BiasAndRelu output_;
};

class DepthwiseConv2DLayer final : public Layer {
 public:
  // `spec` has its defaults filled in; `shape` is of one example.
  DepthwiseConv2DLayer(const job::DepthwiseConv2D& spec,
                       const DepthwiseShape& shape, Epilogue epilogue)
      : spec_(spec), shape_(shape), epilogue_(epilogue) {
    output_shape_ = {shape.height.output, shape.width.output, shape.filters()};
    variables_.push_back({.name = "depthwise_kernel",
                          .shape = {shape.rows(), shape.columns(),
                                    shape.channels, shape.multiplier},
                          .initializer = spec.kernel_initializer()});
    variable_l2_.push_back(spec.kernel_l2());
    if (!spec.use_bias()) return;
    variables_.push_back({.name = "bias",
                          .shape = {shape.filters()},
                          .initializer = spec.bias_initializer()});
    variable_l2_.push_back(spec.bias_l2());
  }

  std::unique_ptr<const Layer> WithRelu() const override {
    return std::make_unique<DepthwiseConv2DLayer>(spec_, shape_,
                                                  Epilogue::kRelu);
  }
  bool KeepsOutputGradient() const override {
    return epilogue_ == Epilogue::kNone;
  }
  bool IsRecordable() const override { return true; }

  absl::StatusOr<std::unique_ptr<LayerPass>> NewPass(
      Device& device, int64_t examples) const override {
    DepthwiseShape shape = shape_;
    shape.examples = examples;
    return std::make_unique<DepthwiseConv2DPass>(
        device, shape,
        BiasAndRelu{.rows = shape.outputs(),
                    .columns = shape.filters(),
                    .has_bias = spec_.use_bias(),
                    .epilogue = epilogue_});
  }

 private:
  const job::DepthwiseConv2D spec_;
  const DepthwiseShape shape_;
  const Epilogue epilogue_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<const Layer>> MakeDepthwiseConv2D(
    const job::DepthwiseConv2D& spec, absl::Span<const LayerInput> inputs) {
  ASSIGN_OR_RETURN(const Shape image, OnlyDenseInput(inputs));
  job::DepthwiseConv2D filled = spec;
  FillDepthwise(filled);
  ASSIGN_OR_RETURN(const DepthwiseShape shape, FitDepthwise(image, filled));
  return WithActivation(
      std::make_unique<DepthwiseConv2DLayer>(filled, shape, Epilogue::kNone),
      filled.activation());
}

constinit const LayerKind kDepthwiseConv2DKind = {
    .field = job::Layer::kDepthwiseConv2D,
    .fill_defaults =
        [](job::Layer& layer) {
          FillDepthwise(*layer.mutable_depthwise_conv2d());
        },
    .check =
        [](const std::string& path, const job::Layer& layer) {
          return CheckDepthwise(path, layer.depthwise_conv2d());
        },
    .make =
        [](const job::Layer& layer, absl::Span<const LayerInput> inputs,
           int64_t) {
          return MakeDepthwiseConv2D(layer.depthwise_conv2d(), inputs);
        },
};

}  // namespace parasol
