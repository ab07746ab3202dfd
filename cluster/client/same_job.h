#ifndef PARASOL_CLUSTER_CLIENT_SAME_JOB_H_
#define PARASOL_CLUSTER_CLIENT_SAME_JOB_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "proto/chief.pb.h"

// Checks that a task can go on with what the chief says now, after a restart of
// the chief with another job, placement or checkpoint directory.
namespace parasol {

// Returns OK if a worker that has joined with the answer `joined` to its first
// registration can go on after `now`, the answer to a later one.
//   Unavailable  the variables are of another run or layout, or what the worker
//                goes by in its job has changed: it has to start again. The
//                message says what.
absl::Status CheckWorkerGoesOn(const wire::RegisterResponse& joined,
                               const wire::RegisterResponse& now);

// Does the same for an evaluator, which goes by the model and the data set of
// its job.
absl::Status CheckEvaluatorGoesOn(const wire::RegisterResponse& joined,
                                  const wire::RegisterResponse& now);

// Returns OK if these are the run and the layout that a worker has joined; an
// empty run or a layout of 0 is not compared. Fails as CheckWorkerGoesOn()
// does.
absl::Status CheckVariables(const wire::RegisterResponse& joined,
                            const std::string& run_id, uint64_t layout);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CLIENT_SAME_JOB_H_
