#ifndef PARASOL_SERVING_JSON_REQUEST_H_
#define PARASOL_SERVING_JSON_REQUEST_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "serving/request_columns.h"

namespace parasol {

// Settings of a request in JSON beside its examples.
struct JsonRequest {
  std::string signature_name = {};
  // True for {"instances": …}, which is answered with "predictions"; false for
  // {"inputs": …}, which is answered with "outputs".
  bool is_rows = true;
};

// Reads the body of TensorFlow Serving's REST call `predict`:
//
//   {"instances": [{"user": 7, "item": "a"}, …]}   one object per example, or
//   {"instances": [[…], …]}                        the only input's values
//   {"inputs": {"user": [7, …], "item": ["a", …]}} one list per input, or
//   {"inputs": [[…], …]}                           the only input's values
//
// with or without "signature_name". null, or an input that an example's object
// lacks, is a missing value; {"b64": "…"} is a text. Numbers may have any size
// that float64 has.
//   InvalidArgument  the body is not JSON, not of this form, nested too deeply,
//                    beyond the limits of `columns`, or names an input that
//                    there is not: names the place.
absl::StatusOr<JsonRequest> ParseJsonRequest(absl::string_view body,
                                             RequestColumns& columns);

}  // namespace parasol

#endif  // PARASOL_SERVING_JSON_REQUEST_H_
