#ifndef PARASOL_CLUSTER_JOB_DEFAULTS_H_
#define PARASOL_CLUSTER_JOB_DEFAULTS_H_

#include "absl/status/status.h"
#include "proto/job.pb.h"

namespace parasol {

// Sets every field that is not set and has a default (docs/job.md), so that the
// code that reads the job needs to know none. A field without a default (a data
// set, the layers, the end) stays unset, and Validate() requires it. May be
// applied twice.
void FillDefaults(job::Job& job);

// Sets the defaults that depend on the cluster, which has `workers` workers:
// the numbers of replicas of a synchronous step (under multi-worker mirrored
// and hybrid one for each device of all workers), and what SetReplicas() sets.
// The chief applies them before it gives the job to any task.
//   InvalidArgument  as for SetReplicas().
absl::Status FillClusterDefaults(job::Job& job, int workers);

// Replaces train.global_batch_size, if the job has it, by the batch_size of
// each of `replicas` replicas, and eval.global_batch_size by the batch_size of
// one. Sets the learning rates that depend on the global batch.
//   InvalidArgument  the size can't be split evenly, or has no learning rate;
//                    names the numbers.
absl::Status SetReplicas(int replicas, job::Job& job);

// Returns a job whose defaults are filled in with its local steps as a user
// writes them: an `outer` optimizer, and the batch size of a local step.
job::Job WithLocalStepsAsWritten(job::Job job);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_JOB_DEFAULTS_H_
