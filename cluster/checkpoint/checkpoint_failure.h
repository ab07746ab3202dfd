#ifndef PARASOL_CLUSTER_CHECKPOINT_CHECKPOINT_FAILURE_H_
#define PARASOL_CLUSTER_CHECKPOINT_CHECKPOINT_FAILURE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

// The words for checkpoints that can't be written. Pure.
namespace parasol {

// Returns one line about a checkpoint of `step` whose newest attempt, the
// `attempts`th, ended with `status`.
std::string DescribeFailure(int64_t step, int attempts,
                            const absl::Status& status);

// Returns how a job ends whose first or last checkpoint could not be written
// within `limit` (zero: in the attempt that a stop leaves time for), by the
// `status` of the newest attempt:
//   Unavailable         a ps does not answer, or does not write.
//   InvalidArgument     the directory is missing, full or closed to a task.
//   FailedPrecondition  any other reason.
absl::Status EndWithoutCheckpoint(int64_t step, absl::Duration limit,
                                  const absl::Status& status);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECKPOINT_CHECKPOINT_FAILURE_H_
