#ifndef PARASOL_CLUSTER_CHECKPOINT_RESUME_H_
#define PARASOL_CLUSTER_CHECKPOINT_RESUME_H_

#include <functional>
#include <optional>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cluster/checkpoint/checkpoint_contents.h"
#include "proto/checkpoint.pb.h"
#include "proto/job.pb.h"
#include "storage/checkpoint_store.h"

// The start of a chief, or of a worker without a cluster: the run with which it
// goes on, and the checks on the checkpoints that it finds.
namespace parasol {

// The run with which a job goes on.
struct ResumedRun {
  std::string run_id;
  // The newest complete checkpoint; nullopt in a new run.
  std::optional<durable::CheckpointManifest> checkpoint;
  // True if that checkpoint is the last one of the job: nothing is left to
  // train.
  bool is_complete = false;
  // Steps of newer checkpoints that are damaged and were passed over.
  std::set<int64_t> damaged;
};

// Returns the run of the newest complete checkpoint in `store`, or a new run if
// there is none, and logs which it is and what has changed in the job. Passes
// over the steps `damaged`, whose files were found damaged by a process that
// has read them. Fails as FindCheckpoint() and CheckResumable() do.
absl::StatusOr<ResumedRun> ResumeRun(const CheckpointStore& store,
                                     const job::Job& job,
                                     const CheckpointContents& contents,
                                     const std::set<int64_t>& damaged = {});

// The caller's side of a verification, which takes as long as reading the
// checkpoint does.
struct Verification {
  // Called with the path of each checkpoint before it is read.
  std::function<void(const std::string& path)> on_begin =
      [](const std::string&) {};
  // Function that ends the verification; it is asked before each file.
  std::function<bool()> cancelled = [] { return false; };
};

// Returns the run of the newest checkpoint that is intact, as ResumeRun() does:
// reads the files of each checkpoint that it tries, once. All shards then go on
// from one step; a damaged file that only its ps finds costs that shard its
// newest updates.
//   Cancelled  `verification.cancelled` returned true.
absl::StatusOr<ResumedRun> ResumeIntactRun(
    const CheckpointStore& store, const job::Job& job,
    const CheckpointContents& contents, const Verification& verification = {});

// Returns the manifest of the newest checkpoint whose manifest and files' sizes
// are right, and that is not in `damaged`; nullopt if the directory is empty.
//   DataLoss  there are checkpoints, but all are damaged: a new run would bury
//             what can perhaps be saved.
absl::StatusOr<std::optional<durable::CheckpointManifest>> FindCheckpoint(
    const CheckpointStore& store, const std::set<int64_t>& damaged = {});

// Returns OK if `job`, whose checkpoints have `contents`, can train on from the
// checkpoint. Learning rates, the end and the like may differ.
//   InvalidArgument  the message names the first difference.
absl::Status CheckResumable(const durable::CheckpointManifest& checkpoint,
                            const job::Job& job,
                            const CheckpointContents& contents);

// Returns true if nothing is left to train: the checkpoint is the last one of a
// job with this end.
bool IsComplete(const durable::CheckpointManifest& checkpoint,
                const job::Job& job);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECKPOINT_RESUME_H_
