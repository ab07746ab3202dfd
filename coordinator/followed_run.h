#ifndef PARASOL_COORDINATOR_FOLLOWED_RUN_H_
#define PARASOL_COORDINATOR_FOLLOWED_RUN_H_

#include "absl/status/status.h"
#include "coordinator/coordinator_options.h"

namespace parasol {

// Fills in `followed` for a job whose training set grows, as the checkpoint
// says that the run is resumed from. Batches of a set that grows and of one
// that does not have other numbers: a job that begins to follow begins with the
// first file that it has, and drops unfinished batches of the other set.
//   InvalidArgument  as for CheckFollowed(), or the job has ceased to follow.
//   DataLoss         as for FollowedFiles::Of().
absl::Status ResumeFollowed(CoordinatorOptions& options);

// Requires that the job goes on with what the run has followed: the files that
// `followed` has, of the checkpoint and taken after it, are of the job's
// patterns, those that it keeps have batches of the job's size, and those that
// the checkpoint keeps are in the job's order.
//   InvalidArgument  they are not: says what to do.
absl::Status CheckFollowed(const CoordinatorOptions& options);

}  // namespace parasol

#endif  // PARASOL_COORDINATOR_FOLLOWED_RUN_H_
