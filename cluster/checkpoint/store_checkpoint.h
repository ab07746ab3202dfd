#ifndef PARASOL_CLUSTER_CHECKPOINT_STORE_CHECKPOINT_H_
#define PARASOL_CLUSTER_CHECKPOINT_STORE_CHECKPOINT_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "proto/checkpoint.pb.h"
#include "storage/checkpoint_store.h"

namespace parasol {

// Writes the shards' files into `directory` and lists them in `manifest`.
using WriteShardFiles = absl::FunctionRef<absl::Status(
    const std::string& directory, durable::CheckpointManifest& manifest)>;

// Checks that this process is still the directory's owner, as
// DirectoryOwnership::Check() does.
using CheckOwner = absl::FunctionRef<absl::Status()>;

// Writes one checkpoint: begins it, has `write_files` write its files, commits
// it with `manifest`, which lacks only the files, and prunes the store to
// `max_to_keep` and the first of `best_first` that is there. Calls
// `check_owner` before each of these changes. A failure to prune is logged: the
// checkpoint is there. Leaves nothing of a checkpoint that failed, unless the
// owner is another one now: then touches nothing more. Errors are those of
// `check_owner`, `write_files`, CheckpointStore::Begin() and Commit().
absl::Status StoreCheckpoint(CheckpointStore& store,
                             durable::CheckpointManifest manifest,
                             int max_to_keep, WriteShardFiles write_files,
                             CheckOwner check_owner,
                             absl::Span<const int64_t> best_first = {});

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECKPOINT_STORE_CHECKPOINT_H_
