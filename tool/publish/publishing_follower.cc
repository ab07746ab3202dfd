#include "tool/publish/publishing_follower.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "cluster/checkpoint/model/checkpoint_listing.h"
#include "proto/checkpoint.pb.h"
#include "storage/checkpoint_manifest.h"
#include "storage/durable_file.h"

namespace parasol {
namespace {

constexpr absl::Duration kLogInterval = absl::Seconds(30);
// Shortest time between two tries of a checkpoint: each reads all of it.
constexpr absl::Duration kRetryDelay = absl::Seconds(5);

// Returns true if publishing again may end otherwise.
bool MayEndOtherwise(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsResourceExhausted(status) ||
         absl::IsPermissionDenied(status);
}

}  // namespace

absl::Status CheckCanBeFollowed(const std::string& checkpoints) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names,
                   ListDirectory(checkpoints));
  if (std::find(names.begin(), names.end(), kManifestName) == names.end()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      checkpoints,
      ": is one checkpoint; --follow takes the directory of all of a job"));
}

PublishingFollower::PublishingFollower(
    const Options& options, Publisher& publisher,
    std::function<void(const Publication&)> published, Clock& clock)
    : options_(options),
      store_(options.checkpoints),
      publisher_(publisher),
      published_(std::move(published)),
      clock_(clock) {}

void PublishingFollower::Stop() {
  absl::MutexLock lock(&mu_);
  is_stopping_ = true;
}

bool PublishingFollower::IsStopping() const {
  absl::MutexLock lock(&mu_);
  return is_stopping_;
}

absl::Status PublishingFollower::Run() {
  RETURN_IF_ERROR(CheckCanBeFollowed(options_.checkpoints));
  while (true) {
    const absl::StatusOr<Listing> listing = ListCheckpoints(
        store_, [](const durable::CheckpointManifest&) { return true; });
    if (listing.ok()) {
      if (listing->empty()) {
        LOG_EVERY(INFO, kLogInterval)
            << "waiting for a first checkpoint in " << options_.checkpoints;
      }
      follower_.Forget(*listing);
      must_wait_ = false;
      has_no_room_ = false;
      RETURN_IF_ERROR(PublishNewOnes(*listing));
      if (!must_wait_ && follower_.IsAtEnd(*listing)) {
        const ListedCheckpoint& last = *CheckpointFollower::Newest(*listing);
        if (!follower_.IsDamaged(last)) return absl::OkStatus();
        return absl::DataLossError(
            absl::StrCat(store_.PathOf(last.step),
                         ": the job's last checkpoint is damaged, and was not "
                         "published"));
      }
    } else if (absl::IsUnavailable(listing.status())) {
      LOG_EVERY(WARNING, kLogInterval) << listing.status().message();
    } else {
      return listing.status();
    }
    const absl::Duration pause =
        must_wait_ ? std::max(options_.poll_interval, kRetryDelay)
                   : options_.poll_interval;
    absl::MutexLock lock(&mu_);
    if (clock_.AwaitWithTimeout(mu_, absl::Condition(&is_stopping_), pause)) {
      return absl::OkStatus();
    }
  }
}

void PublishingFollower::ReportDamaged(const ListedCheckpoint& checkpoint,
                                       const absl::Status& damage) {
  if (!follower_.FoundDamaged(checkpoint)) return;
  LOG(WARNING) << "passing over a damaged checkpoint: " << damage.message();
}

absl::Status PublishingFollower::PublishNewOnes(const Listing& listing) {
  VisitDamaged(
      store_, listing,
      [this](const ListedCheckpoint& checkpoint, const absl::Status& damage) {
        ReportDamaged(checkpoint, damage);
      });
  Listing left = listing;
  while (const std::optional<ListedCheckpoint> next = follower_.Next(left)) {
    if (IsStopping()) break;
    // One that can't be read for now holds up no newer one; without room for
    // what is written none can be published.
    std::erase(left, *next);
    if (has_no_room_) break;
    if (next->step < publisher_.newest_step()) {
      const bool is_last =
          next->final && *next == *CheckpointFollower::Newest(listing);
      RETURN_IF_ERROR(PassOver(*next, is_last));
    } else {
      RETURN_IF_ERROR(Publish(*next));
    }
  }
  return absl::OkStatus();
}

absl::Status PublishingFollower::PassOver(const ListedCheckpoint& checkpoint,
                                          bool is_last) {
  const absl::StatusOr<durable::CheckpointManifest> manifest =
      store_.ReadManifest(checkpoint.step);
  if (absl::IsUnavailable(manifest.status())) {
    TryAgainAfter(manifest.status());
    return absl::OkStatus();
  }
  if (absl::IsDataLoss(manifest.status())) {
    ReportDamaged(checkpoint, manifest.status());
    return absl::OkStatus();
  }
  follower_.Evaluated(checkpoint);
  if (absl::IsNotFound(manifest.status())) return absl::OkStatus();  // pruned
  RETURN_IF_ERROR(manifest.status());
  const absl::Status fits =
      publisher_.CheckFits(store_.PathOf(checkpoint.step), *manifest);
  // Of an earlier step, as any successor finds them.
  if (absl::IsFailedPrecondition(fits) && !is_last) return absl::OkStatus();
  return fits;
}

void PublishingFollower::TryAgainAfter(const absl::Status& error) {
  LOG_EVERY(WARNING, kLogInterval) << error.message() << "; will try again";
  must_wait_ = true;
}

absl::Status PublishingFollower::Publish(const ListedCheckpoint& checkpoint) {
  const std::string path = store_.PathOf(checkpoint.step);
  const absl::StatusOr<Publication> publication = publisher_.Publish(path);
  if (publication.ok()) {
    follower_.Evaluated(checkpoint);
    published_(*publication);
    return absl::OkStatus();
  }
  const absl::Status& error = publication.status();
  if (MayEndOtherwise(error)) {
    has_no_room_ = absl::IsResourceExhausted(error);
    TryAgainAfter(error);
    return absl::OkStatus();
  }
  if (absl::IsDataLoss(error)) {
    ReportDamaged(checkpoint, error);
    return absl::OkStatus();
  }
  if (absl::IsNotFound(error) && !IsDirectory(path)) {  // pruned meanwhile
    follower_.Evaluated(checkpoint);
    return absl::OkStatus();
  }
  return error;
}

}  // namespace parasol
