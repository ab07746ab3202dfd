#include "cluster/checkpoint/model/checkpoint_follower.h"

#include <algorithm>

namespace parasol {

std::optional<ListedCheckpoint> CheckpointFollower::Next(
    absl::Span<const ListedCheckpoint> listing) const {
  for (const ListedCheckpoint& checkpoint : listing) {
    if (!checkpoint.damaged && !evaluated_.contains(checkpoint) &&
        !IsDamaged(checkpoint)) {
      return checkpoint;
    }
  }
  return std::nullopt;
}

void CheckpointFollower::Evaluated(const ListedCheckpoint& checkpoint) {
  evaluated_.insert(checkpoint);
}

bool CheckpointFollower::FoundDamaged(const ListedCheckpoint& checkpoint) {
  return damaged_.insert(checkpoint).second;
}

bool CheckpointFollower::IsDamaged(const ListedCheckpoint& checkpoint) const {
  return damaged_.contains(checkpoint);
}

const ListedCheckpoint* CheckpointFollower::Newest(
    absl::Span<const ListedCheckpoint> listing) {
  const auto newest = std::find_if(
      listing.rbegin(), listing.rend(),
      [](const ListedCheckpoint& checkpoint) { return !checkpoint.damaged; });
  return newest == listing.rend() ? nullptr : &*newest;
}

bool CheckpointFollower::IsAtEnd(
    absl::Span<const ListedCheckpoint> listing) const {
  const ListedCheckpoint* const newest = Newest(listing);
  return newest != nullptr && newest->final &&
         (evaluated_.contains(*newest) || IsDamaged(*newest));
}

void CheckpointFollower::Forget(absl::Span<const ListedCheckpoint> listing) {
  const auto is_gone = [listing](const ListedCheckpoint& checkpoint) {
    return !std::binary_search(listing.begin(), listing.end(), checkpoint);
  };
  std::erase_if(evaluated_, is_gone);
  std::erase_if(damaged_, is_gone);
}

}  // namespace parasol
