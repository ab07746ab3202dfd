#include "ml/layer/normalization/group_normalization.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/field_checks.h"
#include "base/set_default.h"
#include "base/status_macros.h"
#include "ml/layer/dense_inputs.h"
#include "ml/layer/field/normalization_epsilon.h"
#include "ml/layer/normalization/group_layer.h"

namespace parasol {
namespace {

constexpr int64_t kGroupOfEachChannel = -1;

void FillDefaults(job::GroupNormalization& spec) {
  PARASOL_SET_DEFAULT(spec, groups, 32);
  PARASOL_SET_DEFAULT(spec, epsilon, 0.001);
  PARASOL_SET_DEFAULT(spec, center, true);
  PARASOL_SET_DEFAULT(spec, scale, true);
}

absl::Status CheckRanges(const std::string& path,
                         const job::GroupNormalization& spec) {
  if (spec.groups() != kGroupOfEachChannel) {
    RETURN_IF_ERROR(RequireInRange(absl::StrCat(path, ".groups"), spec.groups(),
                                   1, kMaxInt));
  }
  return RequireEpsilon(absl::StrCat(path, ".epsilon"), spec.epsilon());
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Layer>> MakeGroupNormalization(
    const job::GroupNormalization& spec, absl::Span<const LayerInput> inputs) {
  ASSIGN_OR_RETURN(Shape shape, OnlyDenseInput(inputs));
  if (shape.empty()) {
    return absl::InvalidArgumentError("needs an axis of channels");
  }
  job::GroupNormalization filled = spec;
  FillDefaults(filled);
  RETURN_IF_ERROR(CheckEpsilon(filled.epsilon()));
  const int64_t channels = shape.back();
  const int64_t groups =
      filled.groups() == kGroupOfEachChannel ? channels : filled.groups();
  if (groups < 1 || channels % groups != 0) {
    return absl::InvalidArgumentError(absl::StrCat("groups is ", groups,
                                                   ", which does not divide ",
                                                   channels, " channels"));
  }
  const GroupLayerForm form = {
      .channels = {.examples = 1,
                   .pixels = ElementsOf(shape) / channels,
                   .groups = groups,
                   .width = channels / groups},
      .form = {.epsilon = static_cast<float>(filled.epsilon())},
      .factor = filled.scale() ? "gamma" : "",
      .term = filled.center() ? "beta" : ""};
  return NewGroupLayer(form, std::move(shape));
}

constinit const LayerKind kGroupNormalizationKind = {
    .field = job::Layer::kGroupNormalization,
    .fill_defaults =
        [](job::Layer& layer) {
          FillDefaults(*layer.mutable_group_normalization());
        },
    .check =
        [](const std::string& path, const job::Layer& layer) {
          return CheckRanges(path, layer.group_normalization());
        },
    .make =
        [](const job::Layer& layer, absl::Span<const LayerInput> inputs,
           int64_t) {
          return MakeGroupNormalization(layer.group_normalization(), inputs);
        },
};

}  // namespace parasol
