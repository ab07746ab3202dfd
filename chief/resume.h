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

// What a chief that starts makes of the checkpoints that are there.
namespace parasol {

// The manifest of the newest intact checkpoint; nothing in an empty directory.
//   DataLoss  there are checkpoints, but none is intact: a new run would bury
//             what can perhaps be saved.
absl::StatusOr<std::optional<durable::CheckpointManifest>> FindCheckpoint(
    const CheckpointStore& store);

// Whether `job`, with these variables and tables and their slots, can train on
// from the checkpoint. Learning rates, the end and the like may differ.
//   InvalidArgument  names the first difference.
absl::Status CheckResumable(
    const durable::CheckpointManifest& checkpoint, const job::Job& job,
    const std::vector<durable::CheckpointVariable>& variables,
    const std::vector<durable::CheckpointTable>& tables);

// Nothing is left to train: it is the last checkpoint of a job with this end.
bool IsComplete(const durable::CheckpointManifest& checkpoint,
                const job::Job& job);

// `job` over `num_ps` shards has the same parts and tables as the checkpoint's
// job had, and takes pushes in the same way: a ps that holds them goes on.
bool HasSameSharding(const durable::CheckpointManifest& checkpoint,
                     const job::Job& job, size_t num_ps);

// The top-level fields of the job that are not as in the checkpoint, for the
// log: "end, optimizer". Empty: the same job.
std::string ChangedFields(const durable::CheckpointManifest& checkpoint,
                          const job::Job& job);

}  // namespace parasol

#endif  // PARASOL_CHIEF_RESUME_H_
