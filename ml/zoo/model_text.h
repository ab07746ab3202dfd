#ifndef PARASOL_ML_ZOO_MODEL_TEXT_H_
#define PARASOL_ML_ZOO_MODEL_TEXT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/job.pb.h"

namespace parasol::zoo {

// Returns `model` as it stands in a job file: "model {", then messages, each on
// one line if it fits into 120 columns, then "}".
std::string ModelText(const job::Model& model);

// Returns `job_text` with its model replaced by `model`. All other text stays.
//   InvalidArgument  there is no "model {" at the start of a line with a "}" at
//                    the start of a later one.
absl::StatusOr<std::string> WithModel(absl::string_view job_text,
                                      const job::Model& model);

}  // namespace parasol::zoo

#endif  // PARASOL_ML_ZOO_MODEL_TEXT_H_
