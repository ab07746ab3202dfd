#include "ml/layer/sequence/positional_embedding.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/field_checks.h"
#include "base/set_default.h"
#include "base/status_macros.h"
#include "ml/initializer/initializer_fields.h"
#include "ml/kernel/affine.h"
#include "ml/layer/sequence/sines.h"
#include "ml/layer/sequence/step_inputs.h"

namespace parasol {
namespace {

class PositionalEmbeddingPass final : public LayerPass {
 public:
  // `sines`: what is added; empty if it is the variable.
  PositionalEmbeddingPass(Device& device, int64_t examples, int64_t size,
                          Array<float> sines)
      : device_(device),
        examples_(examples),
        size_(size),
        sines_(std::move(sines)) {}

  absl::Status RunForward(const Forward& pass) override {
    RETURN_IF_ERROR(device_.Copy(Device::Stream::kCompute, pass.x[0],
                                 examples_ * size_, pass.y));
    return ApplyEpilogue(
        device_, pass.variables.empty() ? sines_.data() : pass.variables[0],
        Epilogue::kNone, {pass.y, examples_, size_});
  }

  absl::Status RunVariableGradients(const Backward& pass) override {
    if (pass.gradients.empty()) return absl::OkStatus();
    return SumRows(device_, {pass.dy, examples_, size_}, pass.gradients[0]);
  }

  // For who does not ask PassesGradientOn().
  absl::Status RunInputGradients(const Backward& pass) override {
    if (pass.dx[0] == nullptr) return absl::OkStatus();
    return device_.Copy(Device::Stream::kCompute, pass.dy, examples_ * size_,
                        pass.dx[0]);
  }

 private:
  Device& device_;
  const int64_t examples_;
  const int64_t size_;
  const Array<float> sines_;
};

class PositionalEmbeddingLayer final : public Layer {
 public:
  // `spec` has its defaults filled in.
  PositionalEmbeddingLayer(const job::PositionalEmbedding& spec,
                           const StepInputs& inputs)
      : max_wavelength_(spec.max_wavelength()) {
    output_shape_ = {inputs.steps, inputs.channels};
    if (spec.sinusoidal()) return;
    variables_.push_back({.name = "embeddings",
                          .shape = output_shape_,
                          .initializer = spec.initializer()});
    variable_l2_.push_back(0);
  }

  bool KeepsOutputGradient() const override { return true; }
  bool PassesGradientOn(size_t /*input*/) const override { return true; }
  bool IsRecordable() const override { return true; }
  absl::StatusOr<std::unique_ptr<LayerPass>> NewPass(
      Device& device, int64_t examples) const override {
    const int64_t size = ElementsOf(output_shape_);
    Array<float> sines;
    if (variables_.empty()) {
      ASSIGN_OR_RETURN(sines, device.NewArray<float>(size));
      ASSIGN_OR_RETURN(const Array<float> on_host,
                       device.NewHostArray<float>(size));
      WriteSines(output_shape_[0], output_shape_[1], max_wavelength_,
                 on_host.span());
      RETURN_IF_ERROR(device.Copy<float>(Device::Stream::kCompute,
                                         on_host.span(), sines.data()));
      RETURN_IF_ERROR(device.Synchronize());
    }
    return std::make_unique<PositionalEmbeddingPass>(device, examples, size,
                                                     std::move(sines));
  }

 private:
  const double max_wavelength_;
};

void FillDefaults(job::PositionalEmbedding& spec) {
  PARASOL_SET_DEFAULT(spec, sinusoidal, false);
  PARASOL_SET_DEFAULT(spec, max_wavelength, 10000);
  FillKernelInitializer(*spec.mutable_initializer());
}

absl::Status CheckRanges(const std::string& path,
                         const job::PositionalEmbedding& spec) {
  RETURN_IF_ERROR(RequirePositive(absl::StrCat(path, ".max_wavelength"),
                                  spec.max_wavelength()));
  RETURN_IF_ERROR(CheckKernelInitializer(spec.initializer()))
      << path << ".initializer";
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Layer>> MakePositionalEmbedding(
    const job::PositionalEmbedding& spec, absl::Span<const LayerInput> inputs) {
  ASSIGN_OR_RETURN(const StepInputs steps, StepInputsOf(inputs));
  if (steps.masked) {
    return absl::InvalidArgumentError("takes one input, not a mask, too");
  }
  job::PositionalEmbedding filled = spec;
  FillDefaults(filled);
  if (!(filled.max_wavelength() > 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "max_wavelength is ", filled.max_wavelength(), ", not above 0"));
  }
  return std::make_unique<PositionalEmbeddingLayer>(filled, steps);
}

constinit const LayerKind kPositionalEmbeddingKind = {
    .field = job::Layer::kPositionalEmbedding,
    .fill_defaults =
        [](job::Layer& layer) {
          FillDefaults(*layer.mutable_positional_embedding());
        },
    .check =
        [](const std::string& path, const job::Layer& layer) {
          return CheckRanges(path, layer.positional_embedding());
        },
    .make =
        [](const job::Layer& layer, absl::Span<const LayerInput> inputs,
           int64_t) {
          return MakePositionalEmbedding(layer.positional_embedding(), inputs);
        },
};

}  // namespace parasol
