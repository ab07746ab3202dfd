#include "serving/version_policy.h"

#include <algorithm>

namespace parasol {

std::optional<ListedCheckpoint> VersionPolicy::Next(
    absl::Span<const ListedCheckpoint> listing) const {
  if (listing.empty()) return std::nullopt;
  const bool went_back =
      served_.has_value() && listing.back().step < served_->step;
  for (size_t i = listing.size(); i-- > 0;) {
    const ListedCheckpoint& checkpoint = listing[i];
    if (pinned_.has_value() && checkpoint.step != *pinned_) continue;
    if (checkpoint.damaged || refused_.contains(checkpoint)) continue;
    if (!served_.has_value()) return checkpoint;
    if (checkpoint == *served_) return std::nullopt;
    if (checkpoint.step < served_->step && !went_back) return std::nullopt;
    return checkpoint;
  }
  return std::nullopt;
}

bool VersionPolicy::Refuse(const ListedCheckpoint& checkpoint,
                           const absl::Status& reason) {
  return refused_.emplace(checkpoint, reason).second;
}

void VersionPolicy::Forget(absl::Span<const ListedCheckpoint> listing) {
  std::erase_if(refused_, [listing](const auto& refused) {
    return std::find(listing.begin(), listing.end(), refused.first) ==
           listing.end();
  });
}

absl::Status VersionPolicy::RefusalOfAll(
    absl::Span<const ListedCheckpoint> listing) const {
  absl::Status newest;
  for (const ListedCheckpoint& checkpoint : listing) {
    const auto refused = refused_.find(checkpoint);
    if (refused == refused_.end()) return absl::OkStatus();
    newest = refused->second;
  }
  return newest;
}

std::vector<VersionState> VersionPolicy::States() const {
  std::vector<VersionState> states;
  if (served_.has_value()) {
    states.push_back({.version = served_->step, .is_served = true});
  }
  for (const auto& [checkpoint, reason] : refused_) {
    states.push_back({.version = checkpoint.step, .refused = reason});
  }
  return states;
}

}  // namespace parasol
