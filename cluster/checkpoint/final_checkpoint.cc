#include "cluster/checkpoint/final_checkpoint.h"

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/checkpoint/resume.h"
#include "storage/checkpoint_store.h"

namespace parasol {

bool HasFinalCheckpoint(const std::string& directory, const std::string& run_id,
                        const job::Job& job) {
  if (directory.empty()) return false;
  const CheckpointStore store(directory);
  const absl::StatusOr<std::vector<int64_t>> steps = store.ListSteps();
  if (!steps.ok() || steps->empty()) return false;
  const absl::StatusOr<durable::CheckpointManifest> newest =
      store.ReadManifest(steps->back());
  return newest.ok() && newest->run_id() == run_id && IsComplete(*newest, job);
}

}  // namespace parasol
