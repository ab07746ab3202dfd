#ifndef PARASOL_CLUSTER_CHECKPOINT_BEST_CHECKPOINT_H_
#define PARASOL_CLUSTER_CHECKPOINT_BEST_CHECKPOINT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cluster/checkpoint/evaluation_log.h"
#include "proto/job.pb.h"
#include "storage/checkpoint_store.h"

namespace parasol {

// Names the best checkpoint of those that are there, by the job's
// checkpoint.keep_best, in the store's file BEST:
//   {"checkpoint":"ckpt-000000001200","global_step":1200,"metric":"auc",
//    "value":0.97}
// Replaces the file at once, and only if it changes. Does nothing without
// keep_best, or while none of the checkpoints has an evaluation. Called by the
// process that evaluates.
absl::Status UpdateBest(const CheckpointStore& store, const job::Job& job,
                        absl::Span<const Evaluation> evaluations);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECKPOINT_BEST_CHECKPOINT_H_
