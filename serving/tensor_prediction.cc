#include "serving/tensor_prediction.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "serving/model_spec.h"
#include "serving/request_columns.h"
#include "serving/tensor_request.h"

namespace parasol {
namespace {

absl::Status CheckFilter(const tensorflow::serving::PredictRequest& request,
                         const std::vector<SignatureOutput>& outputs) {
  std::vector<std::string> names;
  for (const SignatureOutput& output : outputs) names.push_back(output.name);
  for (const std::string& name : request.output_filter()) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the signature has no output \"", ShownText(name),
                     "\", but ", absl::StrJoin(names, ", ")));
  }
  return absl::OkStatus();
}

// The elements [first, first + width) of each row of `stride` values.
std::vector<float> Columns(const std::vector<float>& values, size_t first,
                           size_t width, size_t stride) {
  std::vector<float> columns;
  columns.reserve(values.size() / stride * width);
  for (size_t row = 0; row < values.size(); row += stride) {
    const auto begin = values.begin() + row + first;
    columns.insert(columns.end(), begin, begin + width);
  }
  return columns;
}

// Adds the outputs that the request wants: all, if it names none.
void AddOutputs(const tensorflow::serving::PredictRequest& request,
                const std::vector<SignatureOutput>& outputs,
                const std::vector<float>& values,
                tensorflow::serving::PredictResponse& response) {
  const auto& wanted = request.output_filter();
  int64_t stride = 0;
  for (const SignatureOutput& output : outputs) stride += output.width;
  int64_t first = 0;
  for (const SignatureOutput& output : outputs) {
    const bool is_wanted =
        wanted.empty() ||
        std::find(wanted.begin(), wanted.end(), output.name) != wanted.end();
    if (is_wanted) {
      (*response.mutable_outputs())[output.name] =
          outputs.size() == 1
              ? TensorOf(values, output.width)
              : TensorOf(Columns(values, first, output.width, stride),
                         output.width);
    }
    first += output.width;
  }
}

absl::StatusOr<tensorflow::serving::PredictResponse> Answer(
    const Prediction& prediction,
    const tensorflow::serving::PredictRequest& request, absl::Time deadline) {
  const auto& spec = request.model_spec();
  ASSIGN_OR_RETURN(const std::shared_ptr<ServedModel> model,
                   FindModel(prediction, spec));
  ASSIGN_OR_RETURN(const std::vector<SignatureOutput> outputs,
                   model->OutputsOf(spec.signature_name()));
  RETURN_IF_ERROR(CheckFilter(request, outputs));
  RequestColumns columns(model->form(), prediction.limits());
  RETURN_IF_ERROR(ReadTensors(request, prediction.limits(), columns));
  ASSIGN_OR_RETURN(
      const std::vector<float> values,
      prediction.Predict(*model, spec.signature_name(), columns, deadline));
  tensorflow::serving::PredictResponse response;
  AddOutputs(request, outputs, values, response);
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
