#ifndef PARASOL_SERVING_JSON_ANSWER_H_
#define PARASOL_SERVING_JSON_ANSWER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "serving/model_signature.h"
#include "serving/version_state.h"

// The bodies of answers, as TensorFlow Serving's REST API has them.
namespace parasol {

// Returns {"predictions": …} (rows) or {"outputs": …} with `values` [examples,
// elements of all `outputs`]. If there are several, each is an array of its own
// under its name. Numbers have as many digits as their bits
// need; what is not finite is NaN, Infinity or -Infinity, which TensorFlow
// Serving writes, too, though JSON has none.
std::string PredictionsJson(absl::Span<const float> values,
                            absl::Span<const SignatureOutput> outputs,
                            bool is_rows);

// Returns {"error": …}.
std::string ErrorJson(absl::string_view message);

// Returns the answer to GET /v1/models/NAME.
std::string StatusJson(absl::Span<const VersionState> versions);

// Returns the answer to GET /v1/models/NAME/metadata.
std::string MetadataJson(const ModelSignature& signature);

}  // namespace parasol

#endif  // PARASOL_SERVING_JSON_ANSWER_H_
