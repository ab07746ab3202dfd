#ifndef PARASOL_COORDINATOR_CONTINUED_CHAINS_H_
#define PARASOL_COORDINATOR_CONTINUED_CHAINS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/checkpoint.pb.h"
#include "storage/checkpoint_manifest.h"

namespace parasol {

// The files of a complete checkpoint to which the shards of the next one add
// increments. Holds a copy of the manifest; touches the disk where it says so.
class ContinuedChains {
 public:
  // Continues nothing: all shards write whole files.
  ContinuedChains() = default;
  // `path`: the directory of the checkpoint with this manifest, in the
  // checkpoint directory. Continues it unless another number of shards wrote
  // it, or a shard has `full_every` files already.
  ContinuedChains(std::string path, durable::CheckpointManifest manifest,
                  size_t num_shards, int full_every);

  bool empty() const { return chains_.empty(); }
  // Returns the shard's newest file as SnapshotRequest.since names it; empty if
  // empty().
  std::string Since(size_t shard) const;
  // Returns the name of the shard's next file, which no file of its chain has.
  // `num_shards` is as above.
  std::string NextName(size_t shard, size_t num_shards) const;

  // Gives the shard's files names in `directory`, too (hard links). After an
  // error none has one.
  absl::Status LinkInto(const std::string& directory, size_t shard) const;
  // Takes these names away again. Logs what it can't remove: it is in nobody's
  // way.
  void UnlinkFrom(const std::string& directory, size_t shard) const;

  // Appends the shard's files to a manifest, and `newest`, an increment to
  // them.
  void AddTo(durable::CheckpointManifest& manifest, size_t shard,
             durable::CheckpointFile newest) const;

 private:
  std::string path_;
  durable::CheckpointManifest manifest_;
  std::vector<FileChain> chains_;
};

}  // namespace parasol

#endif  // PARASOL_COORDINATOR_CONTINUED_CHAINS_H_
