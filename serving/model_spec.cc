#include "serving/model_spec.h"

#include "base/status_macros.h"

namespace parasol {

absl::StatusOr<std::optional<int64_t>> VersionOf(
    const tensorflow::serving::ModelSpec& spec) {
  if (!spec.version_label().empty()) {
    return absl::InvalidArgumentError(
        "model_spec.version_label is set, but versions have no labels; set "
        "model_spec.version or nothing");
  }
  return spec.has_version() ? std::optional(spec.version().value())
                            : std::nullopt;
}

absl::StatusOr<std::shared_ptr<ServedModel>> FindModel(
    const Prediction& prediction, const tensorflow::serving::ModelSpec& spec) {
  ASSIGN_OR_RETURN(const std::optional<int64_t> version, VersionOf(spec));
  return prediction.Find(spec.name(), version);
}

}  // namespace parasol
