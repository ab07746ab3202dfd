#ifndef PARASOL_EVALUATOR_CHECKPOINT_FOLLOWER_H_
#define PARASOL_EVALUATOR_CHECKPOINT_FOLLOWER_H_

#include <compare>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "absl/types/span.h"

namespace parasol {

// A checkpoint as its directory's listing and its manifest show it. Two with
// the same values are the same one; one that has been replaced differs.
struct ListedCheckpoint {
  int64_t step = 0;
  // Of a checkpoint whose manifest is damaged, the rest is not set.
  bool damaged = false;
  int64_t created_unix_micros = 0;
  bool final = false;

  auto operator<=>(const ListedCheckpoint&) const = default;
};

// Which checkpoint to evaluate next: each one once, in the order of their
// steps, that is not damaged. A listing is what is there now, ascending; a
// checkpoint that was pruned before its turn is left out.
class CheckpointFollower {
 public:
  // nullopt: nothing is left to do for now.
  std::optional<ListedCheckpoint> Next(
      absl::Span<const ListedCheckpoint> listing) const;

  // The evaluation of `checkpoint` is done.
  void Evaluated(const ListedCheckpoint& checkpoint);
  // It can't be read: it gets no other turn. Whether this is news.
  bool FoundDamaged(const ListedCheckpoint& checkpoint);
  bool IsDamaged(const ListedCheckpoint& checkpoint) const;

  // Nothing will come after this listing: its newest checkpoint is the last of
  // its job, and had its turn.
  bool IsAtEnd(absl::Span<const ListedCheckpoint> listing) const;

  // Forgets what is not listed any more.
  void Forget(absl::Span<const ListedCheckpoint> listing);

 private:
  std::set<ListedCheckpoint> evaluated_;
  std::set<ListedCheckpoint> damaged_;
};

}  // namespace parasol

#endif  // PARASOL_EVALUATOR_CHECKPOINT_FOLLOWER_H_
