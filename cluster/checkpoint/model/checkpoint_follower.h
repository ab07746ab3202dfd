#ifndef PARASOL_CLUSTER_CHECKPOINT_MODEL_CHECKPOINT_FOLLOWER_H_
#define PARASOL_CLUSTER_CHECKPOINT_MODEL_CHECKPOINT_FOLLOWER_H_

#include <compare>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "absl/types/span.h"

namespace parasol {

// A checkpoint as its directory's listing and its manifest show it. Two equal
// values are the same checkpoint; a checkpoint that has been replaced differs.
struct ListedCheckpoint {
  int64_t step = 0;
  // True if the manifest is damaged; the fields below are then not set.
  bool damaged = false;
  int64_t created_unix_micros = 0;
  bool final = false;

  auto operator<=>(const ListedCheckpoint&) const = default;
};

// Chooses the checkpoint to evaluate next: each intact one once, in ascending
// order of steps. A listing holds the checkpoints that exist now, in ascending
// order; a checkpoint that was pruned before its turn is left out.
class CheckpointFollower {
 public:
  // Returns the next checkpoint; nullopt if nothing is left to do for now.
  std::optional<ListedCheckpoint> Next(
      absl::Span<const ListedCheckpoint> listing) const;

  // Records that the evaluation of `checkpoint` is done.
  void Evaluated(const ListedCheckpoint& checkpoint);
  // Records that `checkpoint` can't be read: it gets no other turn. Returns
  // true if it is not yet recorded.
  bool FoundDamaged(const ListedCheckpoint& checkpoint);
  bool IsDamaged(const ListedCheckpoint& checkpoint) const;

  // Returns the newest checkpoint whose manifest can be read; nullptr if there
  // is none. What else has the name of one may be no checkpoint at all.
  static const ListedCheckpoint* Newest(
      absl::Span<const ListedCheckpoint> listing);

  // Returns true if no checkpoint will follow this listing: its newest one is
  // the last of its job, and had its turn.
  bool IsAtEnd(absl::Span<const ListedCheckpoint> listing) const;

  // Forgets the checkpoints that are no longer listed.
  void Forget(absl::Span<const ListedCheckpoint> listing);

 private:
  std::set<ListedCheckpoint> evaluated_;
  std::set<ListedCheckpoint> damaged_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECKPOINT_MODEL_CHECKPOINT_FOLLOWER_H_
