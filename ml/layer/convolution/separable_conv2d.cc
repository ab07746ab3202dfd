#include "ml/layer/convolution/separable_conv2d.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ml/kernel/affine.h"
#include "ml/kernel/image/depthwise.h"
#include "ml/kernel/relu.h"
#include "ml/layer/activated_layer.h"
#include "ml/layer/convolution/dilated_window.h"
#include "ml/layer/dense_inputs.h"

namespace parasol {
namespace {

class SeparableConv2DPass final : public LayerPass {
 public:
  struct Form {
    DepthwiseShape depthwise;
    int64_t filters = 0;
    bool has_bias = false;
    Epilogue epilogue = Epilogue::kNone;
  };

  // `inner` and `gradient`: memory for the depthwise convolution's output and
  // its gradient.
  SeparableConv2DPass(Device& device, const Form& form, Array<float> inner,
                      Array<float> gradient)
      : device_(device),
        form_(form),
        inner_(std::move(inner)),
        gradient_(std::move(gradient)) {}

  absl::Status RunForward(const Forward& pass) override {
    RETURN_IF_ERROR(Depthwise(device_, form_.depthwise, pass.x[0],
                              pass.variables[0], inner_.data()));
    return Affine(device_, Inner(inner_.data()), Pointwise(pass.variables),
                  form_.has_bias ? pass.variables[2] : nullptr, form_.epilogue,
                  Output(pass.y));
  }

  absl::Status RunVariableGradients(const Backward& pass) override {
    if (form_.epilogue == Epilogue::kRelu) {
      RETURN_IF_ERROR(ReluGradient(device_, pass.y, pass.dy,
                                   form_.depthwise.outputs() * form_.filters,
                                   pass.dy));
    }
    RETURN_IF_ERROR(AffineVariableGradients(
        device_, Inner(inner_.data()), Output(pass.dy),
        {pass.gradients[1], form_.depthwise.filters(), form_.filters},
        form_.has_bias ? pass.gradients[2] : nullptr));
    RETURN_IF_ERROR(AffineInputGradient(device_, Output(pass.dy),
                                        Pointwise(pass.variables),
                                        Inner(gradient_.data())));
    return DepthwiseKernelGradient(device_, form_.depthwise, pass.x[0],
                                   gradient_.data(), pass.gradients[0]);
  }

  absl::Status RunInputGradients(const Backward& pass) override {
    if (pass.dx[0] == nullptr) return absl::OkStatus();
    return DepthwiseInputGradient(device_, form_.depthwise, gradient_.data(),
                                  pass.variables[0], pass.dx[0]);
  }

 private:
  MutableMatrixView Inner(float* data) const {
    return {data, form_.depthwise.outputs(), form_.depthwise.filters()};
  }
  MutableMatrixView Output(float* data) const {
    return {data, form_.depthwise.outputs(), form_.filters};
  }
  MatrixView Pointwise(absl::Span<const float* const> variables) const {
    return {variables[1], form_.depthwise.filters(), form_.filters};
  }

  Device& device_;
  const Form form_;
  const Array<float> inner_;
  const Array<float> gradient_;
};

class SeparableConv2DLayer final : public Layer {
 public:
  // `spec` has its defaults filled in; `shape` is of one example.
  SeparableConv2DLayer(const job::SeparableConv2D& spec,
                       const DepthwiseShape& shape, Epilogue epilogue)
      : spec_(spec), shape_(shape), epilogue_(epilogue) {
    output_shape_ = {shape.height.output, shape.width.output, spec.filters()};
    AddVariable(
        "depthwise_kernel",
        {shape.rows(), shape.columns(), shape.channels, shape.multiplier},
        spec.kernel_initializer(), spec.kernel_l2());
    AddVariable("pointwise_kernel", {1, 1, shape.filters(), spec.filters()},
                spec.kernel_initializer(), spec.kernel_l2());
    if (!spec.use_bias()) return;
    AddVariable("bias", {spec.filters()}, spec.bias_initializer(),
                spec.bias_l2());
  }

  std::unique_ptr<const Layer> WithRelu() const override {
    return std::make_unique<SeparableConv2DLayer>(spec_, shape_,
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
    ASSIGN_OR_RETURN(Array<float> inner,
                     device.NewArray<float>(shape.y_size()));
    ASSIGN_OR_RETURN(Array<float> gradient,
                     device.NewArray<float>(shape.y_size()));
    return std::make_unique<SeparableConv2DPass>(
        device,
        SeparableConv2DPass::Form{.depthwise = shape,
                                  .filters = spec_.filters(),
                                  .has_bias = spec_.use_bias(),
                                  .epilogue = epilogue_},
        std::move(inner), std::move(gradient));
  }

 private:
  void AddVariable(const char* name, Shape shape,
                   const job::Initializer& initializer, double l2) {
    variables_.push_back(
        {.name = name, .shape = std::move(shape), .initializer = initializer});
    variable_l2_.push_back(l2);
  }

  const job::SeparableConv2D spec_;
  const DepthwiseShape shape_;
  const Epilogue epilogue_;
};

absl::Status CheckRanges(const std::string& path,
                         const job::SeparableConv2D& spec) {
  const std::string filters = absl::StrCat(path, ".filters");
  if (!spec.has_filters()) return Missing(filters);
  RETURN_IF_ERROR(RequireInRange(filters, spec.filters(), 1, kMaxInt));
  return CheckDepthwise(path, spec);
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Layer>> MakeSeparableConv2D(
    const job::SeparableConv2D& spec, absl::Span<const LayerInput> inputs) {
  ASSIGN_OR_RETURN(const Shape image, OnlyDenseInput(inputs));
  job::SeparableConv2D filled = spec;
  FillDepthwise(filled);
  ASSIGN_OR_RETURN(const DepthwiseShape shape, FitDepthwise(image, filled));
  if (filled.filters() < 1 ||
      filled.filters() > kMaxKernelElements / shape.filters()) {
    return absl::InvalidArgumentError(absl::StrCat(
        filled.filters(), " filters of ", shape.filters(),
        " elements: together they must be 1 to ", kMaxKernelElements));
  }
  return WithActivation(
      std::make_unique<SeparableConv2DLayer>(filled, shape, Epilogue::kNone),
      filled.activation());
}

constinit const LayerKind kSeparableConv2DKind = {
    .field = job::Layer::kSeparableConv2D,
    .fill_defaults =
        [](job::Layer& layer) {
          FillDepthwise(*layer.mutable_separable_conv2d());
        },
    .check =
        [](const std::string& path, const job::Layer& layer) {
          return CheckRanges(path, layer.separable_conv2d());
        },
    .make =
        [](const job::Layer& layer, absl::Span<const LayerInput> inputs,
           int64_t) {
          return MakeSeparableConv2D(layer.separable_conv2d(), inputs);
        },
};

}  // namespace parasol
