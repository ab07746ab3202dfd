#ifndef PARASOL_CLUSTER_CHECKPOINT_MODEL_CHECKPOINT_JOB_H_
#define PARASOL_CLUSTER_CHECKPOINT_MODEL_CHECKPOINT_JOB_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cluster/job/job_file.h"

namespace parasol {

// Returns the job of the checkpoint in `directory` with `overrides`
// ("eval.batch_size=100"). Of a checkpoint in a store it reads the manifest
// alone. Fails as CheckpointReader::Open() does, and as LoadJob() with the
// directory in front.
absl::StatusOr<LoadedJob> JobOfCheckpoint(
    const std::string& directory, absl::Span<const std::string> overrides);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECKPOINT_MODEL_CHECKPOINT_JOB_H_
