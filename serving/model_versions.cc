#include "serving/model_versions.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "cluster/checkpoint/best_checkpoint.h"
#include "proto/checkpoint.pb.h"
#include "storage/durable_file.h"

namespace parasol {
namespace {

constexpr absl::Duration kLogInterval = absl::Seconds(30);

// Longest time between two tries of a checkpoint that can't be loaded now.
constexpr absl::Duration kMaxDelay = absl::Seconds(30);

// Number of checkpoints that are looked at: the newest ones, without refused
// ones.
constexpr size_t kMaxListed = 8;

// Returns true if reading again may end otherwise.
bool MayPass(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsNotFound(status) ||
         absl::IsPermissionDenied(status) ||
         absl::IsResourceExhausted(status) || absl::IsCancelled(status);
}

}  // namespace

ModelVersions::ModelVersions(const Options& options, Load load, Clock& clock,
                             ServingMetrics& metrics)
    : options_(options),
      load_(std::move(load)),
      clock_(clock),
      metrics_(metrics),
      store_(options.directory),
      manifests_(store_),
      policy_(options.pinned) {}

std::shared_ptr<ServedModel> ModelVersions::Current() const {
  absl::MutexLock lock(&mu_);
  return current_;
}

std::vector<VersionState> ModelVersions::States() const {
  absl::MutexLock lock(&mu_);
  return policy_.States();
}

void ModelVersions::Stop() {
  absl::MutexLock lock(&mu_);
  is_stopping_ = true;
}

absl::Status ModelVersions::Run() {
  RETURN_IF_ERROR(ListDirectory(options_.directory).status());
  while (true) {
    RETURN_IF_ERROR(Update());
    absl::MutexLock lock(&mu_);
    if (clock_.AwaitWithTimeout(mu_, absl::Condition(&is_stopping_),
                                options_.poll_interval)) {
      return absl::OkStatus();
    }
  }
}

absl::Status ModelVersions::Update() {
  FreeRetired();
  const absl::StatusOr<Listing> listing = List();
  if (!listing.ok()) {
    if (Current() == nullptr && !MayPass(listing.status())) {
      return listing.status();
    }
    LOG_EVERY(WARNING, kLogInterval) << listing.status().message();
    return absl::OkStatus();
  }
  while (const std::optional<ListedCheckpoint> next = Next(*listing)) {
    Try(*next);
  }
  {
    absl::MutexLock lock(&mu_);
    if (current_ != nullptr || is_stopping_) return absl::OkStatus();
    if (!listing->has_others) {
      RETURN_IF_ERROR(policy_.RefusalOfAll(listing->checkpoints));
    }
  }
  LogWaiting();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> ModelVersions::ListBest() {
  const absl::StatusOr<BestCheckpoint> best = ReadBest(options_.directory);
  no_best_ = std::string(best.status().message());
  if (best.ok()) return std::vector<int64_t>{best->global_step};
  if (absl::IsNotFound(best.status())) return std::vector<int64_t>();
  return best.status();
}

absl::StatusOr<std::vector<int64_t>> ModelVersions::ListSteps() {
  if (options_.is_best) return ListBest();
  ASSIGN_OR_RETURN(std::vector<int64_t> steps, store_.ListSteps());
  if (!options_.pinned.has_value()) return steps;
  const bool is_there =
      std::find(steps.begin(), steps.end(), *options_.pinned) != steps.end();
  if (!is_there && !steps.empty() && Current() == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        options_.directory, ": has no checkpoint of --version=",
        *options_.pinned, "; it has ", absl::StrJoin(steps, ", ")));
  }
  steps.clear();
  if (is_there) steps.push_back(*options_.pinned);
  return steps;
}

absl::StatusOr<ModelVersions::Listing> ModelVersions::List() {
  ASSIGN_OR_RETURN(const std::vector<int64_t> steps, ListSteps());
  manifests_.KeepAlone(steps);
  Listing listing;
  size_t candidates = 0;
  for (size_t i = steps.size(); i-- > 0;) {
    if (candidates == kMaxListed) {
      listing.has_others = true;
      break;
    }
    const size_t before = listing.checkpoints.size();
    // Older ones have their turn when the newest is refused or gone.
    ListStep(steps[i], /*may_recall=*/candidates > 0, listing);
    if (listing.checkpoints.size() == before) continue;
    const ListedCheckpoint& listed = listing.checkpoints.back();
    absl::MutexLock lock(&mu_);
    if (!listed.damaged && !policy_.IsRefused(listed)) ++candidates;
  }
  std::reverse(listing.checkpoints.begin(), listing.checkpoints.end());
  return listing;
}

void ModelVersions::ListStep(int64_t step, bool may_recall, Listing& listing) {
  const absl::StatusOr<durable::CheckpointManifest> manifest =
      may_recall ? manifests_.Recall(step) : manifests_.Read(step);
  if (absl::IsNotFound(manifest.status())) return;  // pruned meanwhile
  if (manifest.ok()) {
    listing.checkpoints.push_back(
        {.step = step,
         .created_unix_micros = manifest->created_unix_micros(),
         .final = manifest->final()});
    return;
  }
  const ListedCheckpoint unusable = {.step = step, .damaged = true};
  listing.checkpoints.push_back(unusable);
  if (MayPass(manifest.status())) {
    listing.has_others = true;
    LOG_EVERY(WARNING, kLogInterval)
        << manifest.status().message() << "; will try again";
  } else {
    Refuse(unusable, manifest.status());
  }
}

std::optional<ListedCheckpoint> ModelVersions::Next(const Listing& listing) {
  std::erase_if(delayed_, [&listing](const auto& delayed) {
    return std::find(listing.checkpoints.begin(), listing.checkpoints.end(),
                     delayed.first) == listing.checkpoints.end();
  });
  const absl::Time now = clock_.Now();
  std::vector<ListedCheckpoint> ready = listing.checkpoints;
  for (ListedCheckpoint& checkpoint : ready) {
    const auto delayed = delayed_.find(checkpoint);
    if (delayed != delayed_.end() && delayed->second.next_try > now) {
      checkpoint.damaged = true;  // passed over
    }
  }
  absl::MutexLock lock(&mu_);
  if (is_stopping_) return std::nullopt;
  policy_.Forget(listing.checkpoints);
  return policy_.Next(ready);
}

void ModelVersions::Try(const ListedCheckpoint& checkpoint) {
  absl::StatusOr<std::shared_ptr<ServedModel>> model =
      load_(store_.PathOf(checkpoint.step));
  if (model.ok()) {
    delayed_.erase(checkpoint);
    Swap(checkpoint, *std::move(model));
  } else if (MayPass(model.status())) {
    Delay(checkpoint, model.status());
  } else {
    delayed_.erase(checkpoint);
    Refuse(checkpoint, model.status());
  }
}

void ModelVersions::Delay(const ListedCheckpoint& checkpoint,
                          const absl::Status& reason) {
  Delayed& delayed = delayed_[checkpoint];
  delayed.delay = std::clamp(2 * delayed.delay, options_.poll_interval,
                             std::max(options_.poll_interval, kMaxDelay));
  delayed.next_try = clock_.Now() + delayed.delay;
  LOG(WARNING) << "version " << checkpoint.step
               << " can't be loaded now: " << reason.message()
               << "; will try again in " << absl::FormatDuration(delayed.delay);
}

void ModelVersions::Swap(const ListedCheckpoint& checkpoint,
                         std::shared_ptr<ServedModel> model) {
  std::shared_ptr<ServedModel> before;
  {
    absl::MutexLock lock(&mu_);
    if (is_stopping_) return;
    metrics_.loads.Add();
    metrics_.version.Set(static_cast<double>(checkpoint.step));
    NoteAge(*model);
    policy_.Serve(checkpoint);
    before = std::exchange(current_, std::move(model));
  }
  if (before == nullptr) {
    LOG(INFO) << "serving version " << checkpoint.step;
    options_.on_ready();
    return;
  }
  LOG(INFO) << "serving version " << checkpoint.step << " in place of "
            << before->version();
  retired_.push_back(std::move(before));
}

void ModelVersions::NoteAge(const ServedModel& model) {
  if (model.shares_rows()) metrics_.shared_loads.Add();
  if (model.written() == absl::InfinitePast()) return;
  metrics_.written.Set(
      absl::ToDoubleSeconds(model.written() - absl::UnixEpoch()));
  // The first one may be of any age.
  if (current_ == nullptr) return;
  metrics_.lag.Observe(absl::ToDoubleSeconds(clock_.Now() - model.written()));
}

void ModelVersions::Refuse(const ListedCheckpoint& checkpoint,
                           const absl::Status& reason) {
  std::shared_ptr<ServedModel> served;
  {
    absl::MutexLock lock(&mu_);
    if (!policy_.Refuse(checkpoint, reason)) return;
    served = current_;
  }
  metrics_.refused_loads.Add();
  LOG(WARNING) << "version " << checkpoint.step
               << " can't be served: " << reason.message()
               << (served == nullptr
                       ? ""
                       : absl::StrCat("; version ", served->version(),
                                      " stays"));
}

void ModelVersions::LogWaiting() {
  const absl::Time now = clock_.Now();
  if (now < next_log_) return;
  next_log_ = now + kLogInterval;
  LOG(INFO) << "waiting for the first checkpoint in " << options_.directory
            << (no_best_.empty() ? "" : absl::StrCat(": ", no_best_));
}

void ModelVersions::FreeRetired() {
  std::erase_if(retired_, [](const std::shared_ptr<ServedModel>& model) {
    return model.use_count() == 1;
  });
}

}  // namespace parasol
