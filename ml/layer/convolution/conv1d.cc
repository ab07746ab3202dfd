#include "ml/layer/convolution/conv1d.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/field_checks.h"
#include "base/set_default.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "ml/kernel/copy_columns.h"
#include "ml/kernel/image/convolution.h"
#include "ml/kernel/relu.h"
#include "ml/layer/activated_layer.h"
#include "ml/layer/convolution/dilated_window.h"
#include "ml/layer/convolution/step_window.h"
#include "ml/layer/dense_inputs.h"
#include "ml/layer/field/affine_fields.h"

namespace parasol {
namespace {

class Conv1DPass final : public LayerPass {
 public:
  struct Form {
    ConvolutionShape shape;
    int64_t elements = 0;  // of a window, `dilation` steps apart
    int64_t dilation = 1;
    bool has_bias = false;
    Epilogue epilogue = Epilogue::kNone;
  };

  // `kernel` is memory for a dilated kernel, and for its gradient behind it:
  // all zero, with room for `dilation` steps for each element. Empty for none.
  Conv1DPass(Device& device, const Form& form, Array<float> kernel,
             std::unique_ptr<Convolution> convolution)
      : device_(device),
        form_(form),
        kernel_(std::move(kernel)),
        convolution_(std::move(convolution)) {}

  absl::Status RunForward(const Forward& pass) override {
    const float* kernel = pass.variables[0];
    if (IsDilated()) {
      RETURN_IF_ERROR(CopyColumns(device_, form_.elements, StepSize(), kernel,
                                  StepSize(), kernel_.data(), ElementSize()));
      kernel = kernel_.data();
    }
    return convolution_->Forward(pass.x[0], kernel,
                                 form_.has_bias ? pass.variables[1] : nullptr,
                                 pass.y);
  }

  absl::Status RunVariableGradients(const Backward& pass) override {
    if (form_.epilogue == Epilogue::kRelu) {
      RETURN_IF_ERROR(ReluGradient(device_, pass.y, pass.dy,
                                   form_.shape.y_size(), pass.dy));
    }
    float* const bias = form_.has_bias ? pass.gradients[1] : nullptr;
    if (!IsDilated()) {
      return convolution_->VariableGradients(pass.x[0], pass.dy,
                                             pass.gradients[0], bias);
    }
    float* const dilated = kernel_.data() + form_.elements * ElementSize();
    RETURN_IF_ERROR(
        convolution_->VariableGradients(pass.x[0], pass.dy, dilated, bias));
    return CopyColumns(device_, form_.elements, StepSize(), dilated,
                       ElementSize(), pass.gradients[0], StepSize());
  }

  absl::Status RunInputGradients(const Backward& pass) override {
    if (pass.dx[0] == nullptr) return absl::OkStatus();
    return convolution_->InputGradient(
        pass.dy, IsDilated() ? kernel_.data() : pass.variables[0], pass.dx[0]);
  }

 private:
  bool IsDilated() const { return form_.dilation > 1; }
  // Numbers of a kernel for one step, and from one element to the next.
  int64_t StepSize() const {
    return form_.shape.channels * form_.shape.filters;
  }
  int64_t ElementSize() const { return form_.dilation * StepSize(); }

  Device& device_;
  const Form form_;
  const Array<float> kernel_;
  const std::unique_ptr<Convolution> convolution_;
};

class Conv1DLayer final : public Layer {
 public:
  // `spec` has its defaults filled in.
  Conv1DLayer(const job::Conv1D& spec, const WindowAxis& steps,
              int64_t channels, Epilogue epilogue)
      : spec_(spec), steps_(steps), channels_(channels), epilogue_(epilogue) {
    output_shape_ = {steps.output, spec.filters()};
    variables_.push_back(
        {.name = "kernel",
         .shape = {spec.kernel_size(), channels, spec.filters()},
         .initializer = spec.kernel_initializer()});
    variable_l2_.push_back(spec.kernel_l2());
    if (!spec.use_bias()) return;
    variables_.push_back({.name = "bias",
                          .shape = {spec.filters()},
                          .initializer = spec.bias_initializer()});
    variable_l2_.push_back(spec.bias_l2());
  }

  std::unique_ptr<const Layer> WithRelu() const override {
    return std::make_unique<Conv1DLayer>(spec_, steps_, channels_,
                                         Epilogue::kRelu);
  }
  bool KeepsOutputGradient() const override {
    return epilogue_ == Epilogue::kNone;
  }
  bool IsRecordable() const override { return true; }

  absl::StatusOr<std::unique_ptr<LayerPass>> NewPass(
      Device& device, int64_t examples) const override {
    const Conv1DPass::Form form = {
        .shape = {.examples = examples,
                  .height = FitWindow(1, 1, 1, WindowPadding::kValid),
                  .width = steps_,
                  .channels = channels_,
                  .filters = spec_.filters()},
        .elements = spec_.kernel_size(),
        .dilation = spec_.dilation_rate(),
        .has_bias = spec_.use_bias(),
        .epilogue = epilogue_};
    const int64_t dilated =
        form.dilation == 1
            ? 0
            : 2 * form.dilation * ElementsOf(variables_[0].shape);
    ASSIGN_OR_RETURN(Array<float> kernel, device.NewArray<float>(dilated));
    ASSIGN_OR_RETURN(std::unique_ptr<Convolution> convolution,
                     Convolution::Create(
                         device, form.shape,
                         {.has_bias = form.has_bias, .epilogue = epilogue_}));
    return std::make_unique<Conv1DPass>(device, form, std::move(kernel),
                                        std::move(convolution));
  }

 private:
  const job::Conv1D spec_;
  const WindowAxis steps_;
  const int64_t channels_;
  const Epilogue epilogue_;
};

void FillDefaults(job::Conv1D& spec) {
  FillAffine(spec);
  FillPadding(spec);
  PARASOL_SET_DEFAULT(spec, stride, 1);
  PARASOL_SET_DEFAULT(spec, dilation_rate, 1);
}

absl::Status CheckRanges(const std::string& path, const job::Conv1D& spec) {
  const std::string filters = absl::StrCat(path, ".filters");
  const std::string size = absl::StrCat(path, ".kernel_size");
  if (!spec.has_filters()) return Missing(filters);
  if (!spec.has_kernel_size()) return Missing(size);
  RETURN_IF_ERROR(RequireInRange(filters, spec.filters(), 1, kMaxInt));
  RETURN_IF_ERROR(RequireInRange(size, spec.kernel_size(), 1, kMaxWindowSteps));
  RETURN_IF_ERROR(RequireInRange(absl::StrCat(path, ".stride"), spec.stride(),
                                 1, kMaxWindowSteps));
  RETURN_IF_ERROR(RequireInRange(absl::StrCat(path, ".dilation_rate"),
                                 spec.dilation_rate(), 1, kMaxWindowSteps));
  return CheckProduct(path, spec);
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Layer>> MakeConv1D(
    const job::Conv1D& spec, absl::Span<const LayerInput> inputs) {
  ASSIGN_OR_RETURN(const Shape shape, OnlyDenseInput(inputs));
  job::Conv1D filled = spec;
  FillDefaults(filled);
  ASSIGN_OR_RETURN(const WindowAxis steps, FitSteps(shape, filled));
  // The dilated kernel.
  const int64_t elements = filled.kernel_size() * filled.dilation_rate();
  if (filled.filters() < 1 || shape[1] > kMaxKernelElements / elements ||
      filled.filters() > kMaxKernelElements / (elements * shape[1])) {
    return absl::InvalidArgumentError(absl::StrCat(
        filled.filters(), " filters of ", elements, "x", shape[1],
        " elements: together they must be 1 to ", kMaxKernelElements));
  }
  return WithActivation(
      std::make_unique<Conv1DLayer>(filled, steps, shape[1], Epilogue::kNone),
      filled.activation());
}

constinit const LayerKind kConv1DKind = {
    .field = job::Layer::kConv1D,
    .fill_defaults =
        [](job::Layer& layer) { FillDefaults(*layer.mutable_conv1d()); },
    .check =
        [](const std::string& path, const job::Layer& layer) {
          return CheckRanges(path, layer.conv1d());
        },
    .make = [](const job::Layer& layer, absl::Span<const LayerInput> inputs,
               int64_t) { return MakeConv1D(layer.conv1d(), inputs); },
};

}  // namespace parasol
