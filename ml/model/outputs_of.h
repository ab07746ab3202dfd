#ifndef PARASOL_ML_MODEL_OUTPUTS_OF_H_
#define PARASOL_ML_MODEL_OUTPUTS_OF_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "proto/job.pb.h"

namespace parasol {

// Returns the number of outputs that a model has for one example, which its
// loss compares with labels. Needs no device.
//   InvalidArgument  the spec is not a model: names the layer.
absl::StatusOr<int64_t> OutputsOf(const job::Model& spec);

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_OUTPUTS_OF_H_
