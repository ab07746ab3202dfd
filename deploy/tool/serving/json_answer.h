#ifndef PARASOL_DEPLOY_TOOL_SERVING_JSON_ANSWER_H_
#define PARASOL_DEPLOY_TOOL_SERVING_JSON_ANSWER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "deploy/tool/serving/version_state.h"
#include "ml/input/format/given_examples.h"

// The bodies of answers, as TensorFlow Serving's REST API has them.
namespace parasol {

// Returns {"predictions": …} (rows) or {"outputs": …} with `values`
// [values.size() / width, width]. Numbers have as many digits as their bits
// need; what is not finite is NaN, Infinity or -Infinity, which TensorFlow
// Serving writes, too, though JSON has none.
std::string PredictionsJson(absl::Span<const float> values, int64_t width,
                            bool is_rows);

// Returns {"error": …}.
std::string ErrorJson(absl::string_view message);

// Returns the answer to GET /v1/models/NAME.
std::string StatusJson(absl::Span<const VersionState> versions);

// The inputs and outputs of a model.
struct ModelSignature {
  std::string model = {};
  int64_t version = 0;
  std::vector<GivenColumn> columns = {};
  // Names of the signatures, each with one output.
  std::vector<std::pair<std::string, std::string>> signatures = {};
  int64_t outputs = 0;
};

// Returns the answer to GET /v1/models/NAME/metadata.
std::string MetadataJson(const ModelSignature& signature);

}  // namespace parasol

#endif  // PARASOL_DEPLOY_TOOL_SERVING_JSON_ANSWER_H_
