#ifndef PARASOL_CLUSTER_CHECKPOINT_EVALUATED_ARRAY_H_
#define PARASOL_CLUSTER_CHECKPOINT_EVALUATED_ARRAY_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "proto/checkpoint.pb.h"
#include "storage/checkpoint_reader.h"

namespace parasol {

// Returns the number of the array that has the variable's values as they are
// evaluated: its moving average, or the value itself if it has none, or one
// that has had no update and so is not there yet. Fails as
// CheckpointReader::ReadElements() does.
absl::StatusOr<int> EvaluatedArray(const CheckpointReader& checkpoint,
                                   const durable::CheckpointVariable& variable);

// Fills `out` with all elements of a variable, of EvaluatedArray(). Fails as
// CheckpointReader::ReadElements() does.
absl::Status ReadEvaluated(const CheckpointReader& checkpoint,
                           absl::string_view variable, absl::Span<float> out);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECKPOINT_EVALUATED_ARRAY_H_
