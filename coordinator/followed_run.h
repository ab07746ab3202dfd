#ifndef PARASOL_COORDINATOR_FOLLOWED_RUN_H_
#define PARASOL_COORDINATOR_FOLLOWED_RUN_H_

#include "absl/status/status.h"
#include "coordinator/coordinator_options.h"

namespace parasol {

// Fills in `followed` for a job whose training set grows, as the checkpoint
// says that the run is resumed from. Batches of a set that grows and of one
// that does not have other numbers: a job that has become one of the other kind
// begins with that set's first one that it has, and drops unfinished batches of
// the other.
//   InvalidArgument  the batch size has changed while batches of another size
//                    are unfinished.
//   DataLoss         as for FollowedFiles::Of().
absl::Status ResumeFollowed(CoordinatorOptions& options);

}  // namespace parasol

#endif  // PARASOL_COORDINATOR_FOLLOWED_RUN_H_
