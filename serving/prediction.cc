#include "serving/prediction.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/shown_text.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

bool IsOfClient(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsNotFound(status) ||
         absl::IsUnimplemented(status);
}

}  // namespace

absl::StatusOr<std::shared_ptr<ServedModel>> Prediction::Find(
    absl::string_view name, std::optional<int64_t> version) const {
  if (name != options_.name) {
    return absl::NotFoundError(absl::StrCat("no model \"", ShownText(name),
                                            "\" is served here; the model is ",
                                            options_.name));
  }
  std::shared_ptr<ServedModel> model = versions_.Current();
  if (model == nullptr) {
    return absl::UnavailableError("no version is loaded yet; try again later");
  }
  if (version.has_value() && *version != model->version()) {
    return absl::NotFoundError(absl::StrCat(
        "version ", *version, " is not served; the served version is ",
        model->version()));
  }
  return model;
}

absl::StatusOr<std::vector<VersionState>> Prediction::States(
    absl::string_view name, std::optional<int64_t> version) const {
  std::vector<VersionState> states = versions_.States();
  if (version.has_value()) {
    std::erase_if(states, [&version](const VersionState& state) {
      return state.version != *version;
    });
  }
  if (name == options_.name && !(version.has_value() && states.empty())) {
    return states;
  }
  RETURN_IF_ERROR(Find(name, version).status());
  return absl::NotFoundError(
      absl::StrCat("version ", *version, " has just been replaced; ask again"));
}

absl::StatusOr<std::vector<float>> Prediction::Predict(
    ServedModel& model, absl::string_view signature,
    const RequestColumns& columns, absl::Time deadline) const {
  Batch batch;
  RETURN_IF_ERROR(columns.ToBatch(batch));
  return model.Predict(signature, std::move(batch), deadline);
}

void Prediction::Count(absl::Time begin, const absl::Status& status) const {
  metrics_.latency.Observe(absl::ToDoubleSeconds(clock_.Now() - begin));
  if (status.ok()) {
    metrics_.answers.Add();
  } else if (IsOfClient(status)) {
    metrics_.client_errors.Add();
  } else {
    metrics_.server_errors.Add();
  }
}

}  // namespace parasol
