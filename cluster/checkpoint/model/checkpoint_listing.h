#ifndef PARASOL_CLUSTER_CHECKPOINT_MODEL_CHECKPOINT_LISTING_H_
#define PARASOL_CLUSTER_CHECKPOINT_MODEL_CHECKPOINT_LISTING_H_

#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "cluster/checkpoint/model/checkpoint_follower.h"
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

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECKPOINT_MODEL_CHECKPOINT_LISTING_H_
