#include "deploy/tool/serving/tensor_prediction.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "deploy/tool/serving/request_columns.h"
#include "deploy/tool/serving/tensor_request.h"

namespace parasol {
namespace {

constexpr size_t kMaxShownBytes = 60;

absl::Status CheckFilter(const tensorflow::serving::PredictRequest& request,
                         const std::string& output) {
  for (const std::string& name : request.output_filter()) {
    if (name == output) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "the signature has no output \"",
        absl::CHexEscape(name.substr(0, kMaxShownBytes)), "\", but ", output));
  }
  return absl::OkStatus();
}

absl::StatusOr<tensorflow::serving::PredictResponse> Answer(
    const Prediction& prediction,
    const tensorflow::serving::PredictRequest& request, absl::Time deadline) {
  const auto& spec = request.model_spec();
  if (!spec.version_label().empty()) {
    return absl::InvalidArgumentError(
        "model_spec.version_label is set, but versions have no labels; set "
        "model_spec.version or nothing");
  }
  ASSIGN_OR_RETURN(
      const std::shared_ptr<ServedModel> model,
      prediction.Find(spec.name(), spec.has_version()
                                       ? std::optional(spec.version().value())
                                       : std::nullopt));
  ASSIGN_OR_RETURN(const std::string output,
                   model->OutputOf(spec.signature_name()));
  RETURN_IF_ERROR(CheckFilter(request, output));
  RequestColumns columns(model->form(), prediction.limits());
  RETURN_IF_ERROR(ReadTensors(request, prediction.limits(), columns));
  ASSIGN_OR_RETURN(
      const std::vector<float> values,
      prediction.Predict(*model, spec.signature_name(), columns, deadline));
  tensorflow::serving::PredictResponse response;
  (*response.mutable_outputs())[output] = TensorOf(values, model->outputs());
  auto& answered = *response.mutable_model_spec();
  answered.set_name(prediction.name());
  answered.mutable_version()->set_value(model->version());
  answered.set_signature_name(spec.signature_name().empty()
                                  ? kDefaultSignature
                                  : spec.signature_name());
  return response;
}

}  // namespace

absl::StatusOr<tensorflow::serving::PredictResponse> PredictTensors(
    const Prediction& prediction,
    const tensorflow::serving::PredictRequest& request, absl::Time deadline) {
  const absl::Time begin = prediction.Now();
  absl::StatusOr<tensorflow::serving::PredictResponse> response =
      Answer(prediction, request, std::min(deadline, prediction.Deadline()));
  prediction.Count(begin, response.status());
  return response;
}

}  // namespace parasol
