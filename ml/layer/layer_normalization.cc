#include "ml/layer/layer_normalization.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/set_default.h"
#include "base/status_macros.h"
#include "ml/kernel/normalization/layer_normalization.h"
#include "ml/layer/dense_inputs.h"
#include "ml/layer/field/normalization_epsilon.h"

namespace parasol {
namespace {

class LayerNormalizationPass final : public LayerPass {
 public:
  struct Form {
    bool scale = true;
    bool center = true;
    float epsilon = 0;
  };

  LayerNormalizationPass(Device& device, int64_t rows, int64_t columns,
                         const Form& form, Array<float> moments)
      : device_(device),
        rows_(rows),
        columns_(columns),
        form_(form),
        moments_(std::move(moments)) {}

  absl::Status RunForward(const Forward& pass) override {
    return LayerNormalization(
        device_, {pass.x[0], rows_, columns_}, Gamma(pass.variables),
        form_.center ? pass.variables.back() : nullptr, form_.epsilon,
        Moments(), {pass.y, rows_, columns_});
  }

  absl::Status RunVariableGradients(const Backward& pass) override {
    if (pass.gradients.empty() || pass.gradients[0] == nullptr) {
      return absl::OkStatus();
    }
    return LayerNormalizationVariableGradients(
        device_, {pass.x[0], rows_, columns_}, Moments(),
        {pass.dy, rows_, columns_}, form_.scale ? pass.gradients[0] : nullptr,
        form_.center ? pass.gradients.back() : nullptr);
  }

  absl::Status RunInputGradients(const Backward& pass) override {
    if (pass.dx[0] == nullptr) return absl::OkStatus();
    return LayerNormalizationInputGradient(
        device_, {pass.x[0], rows_, columns_}, Gamma(pass.variables), Moments(),
        {pass.dy, rows_, columns_}, {pass.dx[0], rows_, columns_});
  }

 private:
  const float* Gamma(absl::Span<const float* const> variables) const {
    return form_.scale ? variables[0] : nullptr;
  }
  RowMoments Moments() const {
    return {moments_.data(), moments_.data() + rows_};
  }

  Device& device_;
  const int64_t rows_;
  const int64_t columns_;
  const Form form_;
  const Array<float> moments_;  // [2, rows]
};

class LayerNormalizationLayer final : public Layer {
 public:
  // `spec` has its defaults filled in.
  LayerNormalizationLayer(const job::LayerNormalization& spec, Shape shape)
      : form_{.scale = spec.scale(),
              .center = spec.center(),
              .epsilon = static_cast<float>(spec.epsilon())} {
    output_shape_ = std::move(shape);
    if (form_.scale) {
      AddVariable("gamma").mutable_constant()->set_value(1);
    }
    if (form_.center) AddVariable("beta").mutable_zeros();
  }

  bool KeepsOutputGradient() const override { return true; }
  bool SkipsGradients() const override { return true; }
  bool IsRecordable() const override { return true; }
  absl::StatusOr<std::unique_ptr<LayerPass>> NewPass(
      Device& device, int64_t examples) const override {
    const int64_t columns = output_shape().back();
    const int64_t rows = examples * ElementsOf(output_shape()) / columns;
    ASSIGN_OR_RETURN(Array<float> moments, device.NewArray<float>(2 * rows));
    return std::make_unique<LayerNormalizationPass>(device, rows, columns,
                                                    form_, std::move(moments));
  }

 private:
  job::Initializer& AddVariable(const std::string& name) {
    variables_.push_back({.name = name, .shape = {output_shape_.back()}});
    variable_l2_.push_back(0);
    return variables_.back().initializer;
  }

  const LayerNormalizationPass::Form form_;
};

void FillDefaults(job::LayerNormalization& spec) {
  PARASOL_SET_DEFAULT(spec, epsilon, 0.001);
  PARASOL_SET_DEFAULT(spec, center, true);
  PARASOL_SET_DEFAULT(spec, scale, true);
}

absl::Status CheckRanges(const std::string& path,
                         const job::LayerNormalization& spec) {
  return RequireEpsilon(absl::StrCat(path, ".epsilon"), spec.epsilon());
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Layer>> MakeLayerNormalization(
    const job::LayerNormalization& spec, absl::Span<const LayerInput> inputs) {
  ASSIGN_OR_RETURN(Shape shape, OnlyDenseInput(inputs));
  if (shape.empty()) {
    return absl::InvalidArgumentError(
        "layer_normalization takes a last axis, not a scalar");
  }
  job::LayerNormalization filled = spec;
  FillDefaults(filled);
  RETURN_IF_ERROR(CheckEpsilon(filled.epsilon()));
  return std::make_unique<LayerNormalizationLayer>(filled, std::move(shape));
}

constinit const LayerKind kLayerNormalizationKind = {
    .field = job::Layer::kLayerNormalization,
    .fill_defaults =
        [](job::Layer& layer) {
          FillDefaults(*layer.mutable_layer_normalization());
        },
    .check =
        [](const std::string& path, const job::Layer& layer) {
          return CheckRanges(path, layer.layer_normalization());
        },
    .make =
        [](const job::Layer& layer, absl::Span<const LayerInput> inputs,
           int64_t) {
          return MakeLayerNormalization(layer.layer_normalization(), inputs);
        },
};

}  // namespace parasol
