#include "cluster/checkpoint/final_checkpoint.h"

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/checkpoint/resume.h"
#include "storage/checkpoint_store.h"
#include "storage/directory_owner.h"

namespace parasol {

std::optional<durable::CheckpointManifest> NewestManifest(
    const std::string& directory) {
  if (directory.empty()) return std::nullopt;
  const CheckpointStore store(directory);
  const absl::StatusOr<std::vector<int64_t>> steps = store.ListSteps();
  if (!steps.ok()) return std::nullopt;
  for (auto step = steps->rbegin(); step != steps->rend(); ++step) {
    absl::StatusOr<durable::CheckpointManifest> manifest =
        store.ReadManifest(*step);
    if (manifest.ok()) return *std::move(manifest);
    const bool is_none = absl::IsDataLoss(manifest.status()) ||
                         absl::IsNotFound(manifest.status());
    if (!is_none) return std::nullopt;
  }
  return std::nullopt;
}

bool HasFinalCheckpoint(const std::string& directory, const std::string& run_id,
                        const job::Job& job) {
  const std::optional<durable::CheckpointManifest> newest =
      NewestManifest(directory);
  return newest && newest->run_id() == run_id && IsComplete(*newest, job);
}

std::optional<durable::CheckpointManifest> FindEndedJob(
    const std::string& directory) {
  std::optional<durable::CheckpointManifest> newest = NewestManifest(directory);
  if (!newest || !newest->final()) return std::nullopt;
  const absl::StatusOr<OwnerSight> sight = LookAtOwner(directory);
  if (!sight.ok() || !sight->owner || !sight->owner->released()) {
    return std::nullopt;
  }
  return newest;
}

}  // namespace parasol
