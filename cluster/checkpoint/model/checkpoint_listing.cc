#include "cluster/checkpoint/model/checkpoint_listing.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

// Number of the newest checkpoints at which each listing looks.
constexpr size_t kLookedAt = 7;

}  // namespace

ListedCheckpoint AsListed(const durable::CheckpointManifest& manifest) {
  return {.step = manifest.global_step(),
          .created_unix_micros = manifest.created_unix_micros(),
          .final = manifest.final()};
}

absl::StatusOr<std::vector<ListedCheckpoint>> ListCheckpoints(
    const CheckpointStore& store,
    absl::FunctionRef<bool(const durable::CheckpointManifest&)> is_wanted) {
  KnownManifests none_known(store);
  return ListCheckpoints(none_known, is_wanted);
}

absl::StatusOr<std::vector<ListedCheckpoint>> ListCheckpoints(
    KnownManifests& manifests,
    absl::FunctionRef<bool(const durable::CheckpointManifest&)> is_wanted) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> steps,
                   manifests.store().ListSteps());
  manifests.KeepAlone(steps);
  const size_t older = steps.size() - std::min(steps.size(), kLookedAt);
  // A run that has gone back far writes older steps anew.
  const size_t in_turn = manifests.NextInTurn(older);
  std::vector<ListedCheckpoint> listing;
  for (size_t i = 0; i < steps.size(); ++i) {
    const int64_t step = steps[i];
    const absl::StatusOr<durable::CheckpointManifest> manifest =
        i < older && i != in_turn ? manifests.Recall(step)
                                  : manifests.Read(step);
    if (absl::IsNotFound(manifest.status())) continue;  // pruned meanwhile
    if (absl::IsDataLoss(manifest.status())) {
      listing.push_back({.step = step, .damaged = true});
      continue;
    }
    RETURN_IF_ERROR(manifest.status());
    if (!is_wanted(*manifest)) continue;
    listing.push_back(AsListed(*manifest));
    listing.back().step = step;
  }
  return listing;
}

void VisitDamaged(
    const CheckpointStore& store, absl::Span<const ListedCheckpoint> listing,
    absl::FunctionRef<void(const ListedCheckpoint&, const absl::Status& damage)>
        visit) {
  for (const ListedCheckpoint& checkpoint : listing) {
    if (!checkpoint.damaged) continue;
    const absl::Status status = store.ReadManifest(checkpoint.step).status();
    if (absl::IsDataLoss(status)) visit(checkpoint, status);
  }
}

}  // namespace parasol
