#include "cluster/checkpoint/store_checkpoint.h"

#include "base/log.h"
#include "base/status_macros.h"

namespace parasol {

absl::Status StoreCheckpoint(CheckpointStore& store,
                             durable::CheckpointManifest manifest,
                             int max_to_keep, WriteShardFiles write_files,
                             CheckOwner check_owner,
                             absl::Span<const int64_t> best_first) {
  RETURN_IF_ERROR(check_owner());
  ASSIGN_OR_RETURN(const std::string directory,
                   store.Begin(manifest.global_step()));
  absl::Status status = write_files(directory, manifest);
  const absl::Status owner = check_owner();
  // The next owner removes what is left of the checkpoint.
  if (absl::IsFailedPrecondition(owner)) return owner;
  if (status.ok()) status = owner;
  if (status.ok()) status = store.Commit(directory, manifest);
  if (!status.ok()) {
    store.Abandon(directory);
    return status;
  }
  // What could not be removed is removed next time.
  absl::Status pruned = check_owner();
  if (pruned.ok()) {
    pruned = store.Prune(max_to_keep, manifest.global_step(), best_first);
  }
  if (!pruned.ok()) LOG(WARNING) << "old checkpoints: " << pruned.message();
  return absl::OkStatus();
}

}  // namespace parasol
