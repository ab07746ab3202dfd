#ifndef PARASOL_SERVING_VERSION_POLICY_H_
#define PARASOL_SERVING_VERSION_POLICY_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cluster/checkpoint/model/checkpoint_follower.h"
#include "serving/version_state.h"

namespace parasol {

// Chooses the checkpoint to serve: the newest one that can be served, or the
// pinned one. A listing holds the checkpoints that exist now, in ascending
// order of steps. A checkpoint that was refused gets no other turn, until it is
// replaced. Not thread-safe.
class VersionPolicy {
 public:
  explicit VersionPolicy(std::optional<int64_t> pinned) : pinned_(pinned) {}

  // Returns the checkpoint to load in place of the served one; nullopt to go
  // on. An older one is chosen only if nothing as new as the served one is
  // listed any more: somebody has gone back.
  std::optional<ListedCheckpoint> Next(
      absl::Span<const ListedCheckpoint> listing) const;

  // Records that `checkpoint` is served from now on.
  void Serve(const ListedCheckpoint& checkpoint) { served_ = checkpoint; }
  // Records that `checkpoint` can't be served. Returns true the first time.
  bool Refuse(const ListedCheckpoint& checkpoint, const absl::Status& reason);
  // Forgets the refused checkpoints that are not listed any more.
  void Forget(absl::Span<const ListedCheckpoint> listing);

  // Returns true if the checkpoint was refused, and is remembered.
  bool IsRefused(const ListedCheckpoint& checkpoint) const {
    return refused_.contains(checkpoint);
  }
  // Returns why the newest checkpoint was refused, if all that are listed were;
  // OK if there is another one, or none at all.
  absl::Status RefusalOfAll(absl::Span<const ListedCheckpoint> listing) const;

  const std::optional<ListedCheckpoint>& served() const { return served_; }
  // The served version, then those that were refused, in ascending order.
  std::vector<VersionState> States() const;

 private:
  const std::optional<int64_t> pinned_;
  std::optional<ListedCheckpoint> served_;
  std::map<ListedCheckpoint, absl::Status> refused_;
};

}  // namespace parasol

#endif  // PARASOL_SERVING_VERSION_POLICY_H_
