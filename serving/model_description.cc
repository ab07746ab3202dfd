#include "serving/model_description.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "serving/model_signature.h"
#include "serving/model_spec.h"
#include "serving/served_model.h"
#include "serving/version_state.h"

namespace parasol {
namespace {

namespace serving = tensorflow::serving;

constexpr char kSignatures[] = "signature_def";
absl::Status CheckFields(const serving::GetModelMetadataRequest& request) {
  if (request.metadata_field().empty()) {
    return absl::InvalidArgumentError(
        "metadata_field is empty; set it to \"signature_def\"");
  }
  for (const std::string& field : request.metadata_field()) {
    if (field == kSignatures) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("there is no metadata_field \"", ShownText(field),
                     "\", but \"signature_def\" alone"));
  }
  return absl::OkStatus();
}

serving::ModelVersionStatus StatusOf(const VersionState& version) {
  serving::ModelVersionStatus status;
  status.set_version(version.version);
  status.set_state(serving::ModelVersionStatus::LOADING);
  if (version.is_served) {
    status.set_state(serving::ModelVersionStatus::AVAILABLE);
  }
  if (!version.refused.ok()) {
    status.set_state(serving::ModelVersionStatus::END);
  }
  status.mutable_status()->set_error_code(
      static_cast<int>(version.refused.code()));
  status.mutable_status()->set_error_message(
      std::string(version.refused.message()));
  return status;
}

}  // namespace

absl::StatusOr<serving::GetModelMetadataResponse> DescribeModel(
    const Prediction& prediction,
    const serving::GetModelMetadataRequest& request) {
  RETURN_IF_ERROR(CheckFields(request));
  ASSIGN_OR_RETURN(const std::shared_ptr<ServedModel> model,
                   FindModel(prediction, request.model_spec()));
  serving::GetModelMetadataResponse response;
  response.mutable_model_spec()->set_name(prediction.name());
  response.mutable_model_spec()->mutable_version()->set_value(model->version());
  (*response.mutable_metadata())[kSignatures].PackFrom(
      SignatureDefsOf(model->Signature(prediction.name())));
  return response;
}

absl::StatusOr<serving::GetModelStatusResponse> DescribeVersions(
    const Prediction& prediction,
    const serving::GetModelStatusRequest& request) {
  ASSIGN_OR_RETURN(const std::optional<int64_t> version,
                   VersionOf(request.model_spec()));
  ASSIGN_OR_RETURN(const std::vector<VersionState> states,
                   prediction.States(request.model_spec().name(), version));
  serving::GetModelStatusResponse response;
  for (const VersionState& state : states) {
    *response.add_model_version_status() = StatusOf(state);
  }
  return response;
}

}  // namespace parasol
