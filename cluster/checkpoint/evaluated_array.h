#ifndef PARASOL_CLUSTER_CHECKPOINT_EVALUATED_ARRAY_H_
#define PARASOL_CLUSTER_CHECKPOINT_EVALUATED_ARRAY_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "proto/checkpoint.pb.h"
#include "storage/checkpoint_reader.h"

namespace parasol {

// Returns the number of the array that has the variable's values as they are
// evaluated: its moving average, or the value itself if it has none.
int EvaluatedArray(const durable::CheckpointVariable& variable);

// Fills `out` with all elements of a variable as they are evaluated. An average
// that has had no update is not there yet: then with the value. Errors are
// those of CheckpointReader::ReadElements().
absl::Status ReadEvaluated(const CheckpointReader& checkpoint,
                           absl::string_view variable, absl::Span<float> out);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECKPOINT_EVALUATED_ARRAY_H_
