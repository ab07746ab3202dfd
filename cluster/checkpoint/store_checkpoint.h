#ifndef PARASOL_CLUSTER_CHECKPOINT_STORE_CHECKPOINT_H_
#define PARASOL_CLUSTER_CHECKPOINT_STORE_CHECKPOINT_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "proto/checkpoint.pb.h"
#include "storage/checkpoint_store.h"

namespace parasol {

// Writes the shards' files into `directory` and lists them in `manifest`.
using WriteShardFiles = absl::FunctionRef<absl::Status(
    const std::string& directory, durable::CheckpointManifest& manifest)>;

// Writes one checkpoint: begins it, has `write_files` write its files, commits
// it with `manifest`, which lacks only the files, and prunes the store to
// `max_to_keep`. A failure to prune is logged: the checkpoint is there. Leaves
// nothing of a checkpoint that failed. Errors are those of `write_files`,
// CheckpointStore::Begin() and Commit().
absl::Status StoreCheckpoint(CheckpointStore& store,
                             durable::CheckpointManifest manifest,
                             int max_to_keep, WriteShardFiles write_files);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECKPOINT_STORE_CHECKPOINT_H_
