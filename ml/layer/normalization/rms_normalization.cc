#include "ml/layer/normalization/rms_normalization.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/set_default.h"
#include "base/status_macros.h"
#include "ml/layer/dense_inputs.h"
#include "ml/layer/field/normalization_epsilon.h"
#include "ml/layer/normalization/group_layer.h"

namespace parasol {
namespace {

void FillDefaults(job::RmsNormalization& spec) {
  PARASOL_SET_DEFAULT(spec, epsilon, 1e-6);
}

absl::Status CheckRanges(const std::string& path,
                         const job::RmsNormalization& spec) {
  return RequireEpsilon(absl::StrCat(path, ".epsilon"), spec.epsilon());
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Layer>> MakeRmsNormalization(
    const job::RmsNormalization& spec, absl::Span<const LayerInput> inputs) {
  ASSIGN_OR_RETURN(Shape shape, OnlyDenseInput(inputs));
  if (shape.empty()) {
    return absl::InvalidArgumentError(
        "rms_normalization takes a last axis, not a scalar");
  }
  job::RmsNormalization filled = spec;
  FillDefaults(filled);
  RETURN_IF_ERROR(CheckEpsilon(filled.epsilon()));
  const int64_t width = shape.back();
  // Each row of the last axis is an example of one group.
  const GroupLayerForm form = {
      .channels = {.examples = ElementsOf(shape) / width, .width = width},
      .form = {.epsilon = static_cast<float>(filled.epsilon()),
               .centered = false},
      .factor = "scale"};
  return NewGroupLayer(form, std::move(shape));
}

constinit const LayerKind kRmsNormalizationKind = {
    .field = job::Layer::kRmsNormalization,
    .fill_defaults =
        [](job::Layer& layer) {
          FillDefaults(*layer.mutable_rms_normalization());
        },
    .check =
        [](const std::string& path, const job::Layer& layer) {
          return CheckRanges(path, layer.rms_normalization());
        },
    .make =
        [](const job::Layer& layer, absl::Span<const LayerInput> inputs,
           int64_t) {
          return MakeRmsNormalization(layer.rms_normalization(), inputs);
        },
};

}  // namespace parasol
