#ifndef PARASOL_CLUSTER_CHECKPOINT_FINAL_CHECKPOINT_H_
#define PARASOL_CLUSTER_CHECKPOINT_FINAL_CHECKPOINT_H_

#include <optional>
#include <string>

#include "proto/checkpoint.pb.h"
#include "proto/job.pb.h"

namespace parasol {

// Returns the manifest of the newest checkpoint in `directory`; nullopt if
// there is none, or the directory can't be read. Passes over what has the name
// of a checkpoint and is none: a file, a damaged manifest, another step's.
// Reads manifests alone.
std::optional<durable::CheckpointManifest> NewestManifest(
    const std::string& directory);

// Returns true if the newest checkpoint in `directory` is the last one of this
// run and this job: no task has to wait for a chief that is gone.
bool HasFinalCheckpoint(const std::string& directory, const std::string& run_id,
                        const job::Job& job);

// Returns the newest checkpoint in `directory` if it is the last one of its
// job, and no process owns the directory that may yet go on from it: the job is
// complete, as far as can be known without a chief.
std::optional<durable::CheckpointManifest> FindEndedJob(
    const std::string& directory);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECKPOINT_FINAL_CHECKPOINT_H_
