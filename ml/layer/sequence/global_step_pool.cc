#include "ml/layer/sequence/global_step_pool.h"

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "ml/kernel/sequence/step_pooling.h"
#include "ml/kernel/zero.h"
#include "ml/layer/sequence/step_inputs.h"

namespace parasol {
namespace {

class StepPoolPass final : public LayerPass {
 public:
  StepPoolPass(Device& device, StepPooling pooling, const StepsShape& shape)
      : device_(device), pooling_(pooling), shape_(shape) {}

  absl::Status RunForward(const Forward& pass) override {
    return PoolSteps(device_, pooling_, shape_, pass.x[0], MaskOf(pass.x),
                     pass.y);
  }

  absl::Status RunVariableGradients(const Backward& pass) override {
    return absl::OkStatus();
  }

  absl::Status RunInputGradients(const Backward& pass) override {
    // Nothing changes where a mask changes a little.
    if (pass.dx.size() > 1 && pass.dx[1] != nullptr) {
      RETURN_IF_ERROR(
          Zero(device_, pass.dx[1], shape_.examples * shape_.steps));
    }
    if (pass.dx[0] == nullptr) return absl::OkStatus();
    return PoolStepsGradient(device_, pooling_, shape_, pass.x[0],
                             MaskOf(pass.x), pass.y, pass.dy, pass.dx[0]);
  }

 private:
  static const float* MaskOf(absl::Span<const ConstElements> x) {
    return x.size() > 1 ? x[1].As<float>() : nullptr;
  }

  Device& device_;
  const StepPooling pooling_;
  const StepsShape shape_;
};

class StepPoolLayer final : public Layer {
 public:
  StepPoolLayer(StepPooling pooling, const StepInputs& inputs)
      : pooling_(pooling), inputs_(inputs) {
    output_shape_ = {inputs.channels};
  }

  bool KeepsOutputGradient() const override { return true; }
  bool IsRecordable() const override { return true; }
  absl::StatusOr<std::unique_ptr<LayerPass>> NewPass(
      Device& device, int64_t examples) const override {
    return std::make_unique<StepPoolPass>(
        device, pooling_,
        StepsShape{.examples = examples,
                   .steps = inputs_.steps,
                   .channels = inputs_.channels});
  }

 private:
  const StepPooling pooling_;
  const StepInputs inputs_;
};

absl::StatusOr<std::unique_ptr<const Layer>> MakeStepPool(
    StepPooling pooling, absl::Span<const LayerInput> inputs) {
  ASSIGN_OR_RETURN(const StepInputs steps, StepInputsOf(inputs));
  return std::make_unique<StepPoolLayer>(pooling, steps);
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Layer>> MakeGlobalAveragePool1D(
    absl::Span<const LayerInput> inputs) {
  return MakeStepPool(StepPooling::kAverage, inputs);
}

absl::StatusOr<std::unique_ptr<const Layer>> MakeGlobalMaxPool1D(
    absl::Span<const LayerInput> inputs) {
  return MakeStepPool(StepPooling::kMax, inputs);
}

constinit const LayerKind kGlobalAveragePool1DKind = {
    .field = job::Layer::kGlobalAveragePool1D,
    .make = [](const job::Layer&, absl::Span<const LayerInput> inputs,
               int64_t) { return MakeGlobalAveragePool1D(inputs); },
};

constinit const LayerKind kGlobalMaxPool1DKind = {
    .field = job::Layer::kGlobalMaxPool1D,
    .make = [](const job::Layer&, absl::Span<const LayerInput> inputs,
               int64_t) { return MakeGlobalMaxPool1D(inputs); },
};

}  // namespace parasol
