#ifndef PARASOL_CLUSTER_CHECKPOINT_BEST_CHECKPOINT_H_
#define PARASOL_CLUSTER_CHECKPOINT_BEST_CHECKPOINT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cluster/checkpoint/evaluation_log.h"
#include "proto/job.pb.h"
#include "storage/checkpoint_store.h"
#include "storage/remote/remote_files.h"

namespace parasol {

// The name of the file that says which checkpoint of a directory is the best.
inline constexpr absl::string_view kBestName = "BEST";

// The checkpoint that a directory's file BEST names.
struct BestCheckpoint {
  std::string path = {};  // the checkpoint's own directory
  int64_t global_step = 0;
  std::string metric = {};
  double value = 0;  // NaN if the file has none
};

// Names the best checkpoint of those that are there, by the job's
// checkpoint.keep_best, in the store's file BEST:
//   {"checkpoint":"ckpt-000000001200","global_step":1200,"metric":"auc",
//    "value":0.97,"run_id":"9f0c","chief_epoch":7}
// Replaces the file at once, and only if it changes. Does nothing without
// keep_best, or while none of the checkpoints has an evaluation. Called by the
// process that evaluates. Asks `may_write` before each attempt to write the
// file in a store, whose error ends it: an owner's says whether it still owns
// the directory.
absl::Status UpdateBest(const CheckpointStore& store, const job::Job& job,
                        absl::Span<const Evaluation> evaluations,
                        MayWrite may_write = MayWriteAlways);

// Returns the checkpoint that the file BEST in `directory` names. Reads its
// manifest alone.
//   NotFound     no such directory, no such file, or the checkpoint is gone, or
//                another one than was evaluated has its place: of another run,
//                or written by a later process. The message says what to do.
//   DataLoss     the file is not what UpdateBest() writes, or the checkpoint is
//                damaged.
//   Unavailable  the file system refuses.
absl::StatusOr<BestCheckpoint> ReadBest(const std::string& directory);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECKPOINT_BEST_CHECKPOINT_H_
