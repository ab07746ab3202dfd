#ifndef PARASOL_COORDINATOR_CONTINUED_CHAINS_H_
#define PARASOL_COORDINATOR_CONTINUED_CHAINS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/checkpoint.pb.h"
#include "storage/checkpoint_manifest.h"

namespace parasol {

// The files of a complete checkpoint to which the shards of the next one add
// increments. On a disk they get names in the next one's directory, too; in a
// store they stay where they are, and the next manifest says where. Holds a
// copy of the manifest; touches the disk where it says so.
class ContinuedChains {
 public:
  // Continues nothing: all shards write whole files.
  ContinuedChains() = default;
  // `path`: the directory of the checkpoint with this manifest, in the
  // checkpoint directory. Continues it unless another number of shards wrote
  // it, or a shard has `full_every` files already, or its newest file is in
  // another directory.
  ContinuedChains(std::string path, durable::CheckpointManifest manifest,
                  size_t num_shards, int full_every);

  bool empty() const { return chains_.empty(); }
  // Returns true if a checkpoint of `step` can list the files: in a store one
  // lists files of earlier checkpoints alone.
  bool CanBeListedAt(int64_t step) const;
  // Returns the shard's newest file as SnapshotRequest.since names it; empty if
  // empty().
  std::string Since(size_t shard) const;
  // Returns the name of the shard's next file, which no file of its chain has.
  // `num_shards` is as above.
  std::string NextName(size_t shard, size_t num_shards) const;

  // Gives the shard's files names in `directory`, too (hard links), on a disk.
  // After an error none has one.
  absl::Status LinkInto(const std::string& directory, size_t shard) const;
  // Takes these names away again. Logs what it can't remove: it is in nobody's
  // way.
  void UnlinkFrom(const std::string& directory, size_t shard) const;

  // Appends the shard's files to a manifest, which has its step, and `newest`,
  // an increment to them.
  void AddTo(durable::CheckpointManifest& manifest, size_t shard,
             durable::CheckpointFile newest) const;

 private:
  // Returns what the manifest of the checkpoint of `step` calls a file of this
  // one's manifest.
  std::string NameFrom(int64_t step, const std::string& listed) const;

  std::string path_;
  durable::CheckpointManifest manifest_;
  std::vector<FileChain> chains_;
};

}  // namespace parasol

#endif  // PARASOL_COORDINATOR_CONTINUED_CHAINS_H_
