#include "cluster/checkpoint/model/checkpoint_job.h"

#include <memory>

#include "base/status_macros.h"
#include "storage/checkpoint_reader.h"

namespace parasol {

absl::StatusOr<LoadedJob> JobOfCheckpoint(
    const std::string& directory, absl::Span<const std::string> overrides) {
  ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> checkpoint,
                   CheckpointReader::Open(directory));
  ASSIGN_OR_RETURN(LoadedJob job,
                   LoadJob(checkpoint->manifest().job(), overrides),
                   _ << directory);
  return job;
}

}  // namespace parasol
