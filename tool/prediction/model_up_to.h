#ifndef PARASOL_TOOL_PREDICTION_MODEL_UP_TO_H_
#define PARASOL_TOOL_PREDICTION_MODEL_UP_TO_H_

#include <string>

#include "absl/status/statusor.h"
#include "proto/job.pb.h"

namespace parasol {

// Returns the part of `model`, whose defaults are filled in, that makes the
// output of the layer called `name`: this layer is the last one, flattened if
// its output is no vector, and all layers, inputs and tables that it does not
// depend on are gone. Variables keep their names. The loss accepts any labels
// and means nothing.
//   InvalidArgument  there is no such layer: names the one that may be meant.
absl::StatusOr<job::Model> ModelUpTo(const job::Model& model,
                                     const std::string& name);

}  // namespace parasol

#endif  // PARASOL_TOOL_PREDICTION_MODEL_UP_TO_H_
