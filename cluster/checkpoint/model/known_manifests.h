#ifndef PARASOL_CLUSTER_CHECKPOINT_MODEL_KNOWN_MANIFESTS_H_
#define PARASOL_CLUSTER_CHECKPOINT_MODEL_KNOWN_MANIFESTS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/checkpoint.pb.h"
#include "storage/checkpoint_store.h"

namespace parasol {

// The manifests of a directory as they were read last, for those who look at
// them again and again: in a store each reading takes several requests. On a
// disk they are read each time. Not thread-safe.
class KnownManifests {
 public:
  explicit KnownManifests(CheckpointStore store) : store_(std::move(store)) {}

  const CheckpointStore& store() const { return store_; }

  // Returns a step's manifest as CheckpointStore::ReadManifest() does. One of a
  // store that is known, and has not been written since, takes one request.
  absl::StatusOr<durable::CheckpointManifest> Read(int64_t step);
  // Returns what is known of it, without a request; reads it as Read() does if
  // that is nothing.
  absl::StatusOr<durable::CheckpointManifest> Recall(int64_t step);
  // Returns 0, 1, …, count - 1 and 0 again, one with each call; 0 of none.
  size_t NextInTurn(size_t count) { return count == 0 ? 0 : turn_++ % count; }
  // Forgets what is known of other steps than these, ascending.
  void KeepAlone(absl::Span<const int64_t> steps);

 private:
  struct Known {
    std::string version;  // RemoteFiles::About::version
    // The manifest, or its damage.
    absl::StatusOr<durable::CheckpointManifest> manifest;
  };

  const CheckpointStore store_;
  std::map<int64_t, Known> known_;
  size_t turn_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECKPOINT_MODEL_KNOWN_MANIFESTS_H_
