#ifndef PARASOL_PS_SHARD_SNAPSHOT_BASES_H_
#define PARASOL_PS_SHARD_SNAPSHOT_BASES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "proto/checkpoint.pb.h"

namespace parasol {

// The snapshots of a shard to which the next one may be compared: the newest
// one, and the newest one whose checkpoint is known to be complete. A snapshot
// whose checkpoint failed is never compared to. Not thread-safe.
class SnapshotBases {
 public:
  struct Base {
    // Number of the snapshot, SnapshotTurn::number.
    uint64_t number = 0;
    // The file as a manifest lists it.
    durable::CheckpointFile file = {};
    // UpdatesOf() the snapshot.
    std::vector<int64_t> chunk_updates = {};
  };

  // Returns true if changes are marked: a snapshot was asked for them before.
  bool is_marking() const { return number_ > 0; }
  // Returns the number of a snapshot that is taken now.
  uint64_t NextNumber() { return ++number_; }

  // Notes a snapshot whose file is written.
  void Note(Base base) { newest_ = std::move(base); }

  // Returns the snapshot whose file the manifest of a complete checkpoint lists
  // as `file_name`, with its size and checksum; null if it is none of the two.
  // It lives until the next Note().
  const Base* Find(const durable::CheckpointManifest& manifest,
                   const std::string& file_name);

 private:
  uint64_t number_ = 0;
  std::optional<Base> newest_;
  std::optional<Base> complete_;
};

}  // namespace parasol

#endif  // PARASOL_PS_SHARD_SNAPSHOT_BASES_H_
