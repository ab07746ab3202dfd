#ifndef PARASOL_CHIEF_RESUME_H_
#define PARASOL_CHIEF_RESUME_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/checkpoint.pb.h"
#include "proto/job.pb.h"
#include "storage/checkpoint_store.h"

// The checks of a starting chief on the checkpoints that it finds.
namespace parasol {

// Returns the manifest of the newest intact checkpoint; nullopt if the
// directory is empty.
//   DataLoss  there are checkpoints, but none is intact: a new run would bury
//             what can perhaps be saved.
absl::StatusOr<std::optional<durable::CheckpointManifest>> FindCheckpoint(
    const CheckpointStore& store);

// Returns OK if `job`, with these variables and tables and their slots, can
// train on from the checkpoint. Learning rates, the end and the like may
// differ.
//   InvalidArgument  the message names the first difference.
absl::Status CheckResumable(
    const durable::CheckpointManifest& checkpoint, const job::Job& job,
    const std::vector<durable::CheckpointVariable>& variables,
    const std::vector<durable::CheckpointTable>& tables);

// Returns true if nothing is left to train: the checkpoint is the last one of a
// job with this end.
bool IsComplete(const durable::CheckpointManifest& checkpoint,
                const job::Job& job);

// Returns true if `job` over `num_ps` shards has the same parts and tables as
// the checkpoint's job had, and takes pushes in the same way. A ps that holds
// them goes on.
bool HasSameSharding(const durable::CheckpointManifest& checkpoint,
                     const job::Job& job, size_t num_ps);

// Returns the top-level fields of the job that differ from the checkpoint's,
// for the log: "end, optimizer". Empty if the jobs are the same.
std::string ChangedFields(const durable::CheckpointManifest& checkpoint,
                          const job::Job& job);

}  // namespace parasol

#endif  // PARASOL_CHIEF_RESUME_H_
