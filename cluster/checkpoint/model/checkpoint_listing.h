#ifndef PARASOL_CLUSTER_CHECKPOINT_MODEL_CHECKPOINT_LISTING_H_
#define PARASOL_CLUSTER_CHECKPOINT_MODEL_CHECKPOINT_LISTING_H_

#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cluster/checkpoint/model/checkpoint_follower.h"
#include "cluster/checkpoint/model/known_manifests.h"
#include "proto/checkpoint.pb.h"
#include "storage/checkpoint_store.h"

namespace parasol {

// Returns what a CheckpointFollower wants to know of `manifest`.
ListedCheckpoint AsListed(const durable::CheckpointManifest& manifest);

// Returns the checkpoints of a directory in ascending order: those whose
// manifest `is_wanted`, and those whose manifest is damaged. Reads all
// manifests. Fails as CheckpointStore::ListSteps() does, and as ReadManifest()
// for a manifest that can't be read now.
absl::StatusOr<std::vector<ListedCheckpoint>> ListCheckpoints(
    const CheckpointStore& store,
    absl::FunctionRef<bool(const durable::CheckpointManifest&)> is_wanted);

// Does so with manifests that may be known. Of many it looks at the newest
// ones, and at one of the others each time, in turn.
absl::StatusOr<std::vector<ListedCheckpoint>> ListCheckpoints(
    KnownManifests& manifests,
    absl::FunctionRef<bool(const durable::CheckpointManifest&)> is_wanted);

// Reads the manifests again that `listing` has as damaged, and calls `visit`
// with each checkpoint for which that is so still, and the error that says why.
void VisitDamaged(
    const CheckpointStore& store, absl::Span<const ListedCheckpoint> listing,
    absl::FunctionRef<void(const ListedCheckpoint&, const absl::Status& damage)>
        visit);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECKPOINT_MODEL_CHECKPOINT_LISTING_H_
