#include "deploy/tool/serving/model_versions.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "proto/checkpoint.pb.h"
#include "storage/durable_file.h"

namespace parasol {
namespace {

constexpr absl::Duration kLogInterval = absl::Seconds(30);

// Number of the newest checkpoints that are looked at: one of them is served,
// unless all are damaged.
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
  const absl::StatusOr<std::vector<ListedCheckpoint>> listing = List();
  if (!listing.ok()) {
    if (Current() == nullptr && !MayPass(listing.status())) {
      return listing.status();
    }
    LOG_EVERY(WARNING, kLogInterval) << listing.status().message();
    return absl::OkStatus();
  }
  while (true) {
    std::optional<ListedCheckpoint> next;
    {
      absl::MutexLock lock(&mu_);
      policy_.Forget(*listing);
      next = policy_.Next(*listing);
    }
    if (!next.has_value() || !Try(*next)) break;
  }
  if (Current() != nullptr) return absl::OkStatus();
  if (!listing->empty() && !last_refusal_.ok()) return last_refusal_;
  LogWaiting();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ListedCheckpoint>> ModelVersions::List() {
  ASSIGN_OR_RETURN(std::vector<int64_t> steps, store_.ListSteps());
  if (options_.pinned.has_value()) {
    const bool is_there =
        std::find(steps.begin(), steps.end(), *options_.pinned) != steps.end();
    if (!is_there && !steps.empty() && Current() == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          options_.directory, ": has no checkpoint of --version=",
          *options_.pinned, "; it has ", absl::StrJoin(steps, ", ")));
    }
    steps.clear();
    if (is_there) steps.push_back(*options_.pinned);
  }
  const size_t begin = steps.size() - std::min(steps.size(), kMaxListed);
  std::vector<ListedCheckpoint> listing;
  for (size_t i = begin; i < steps.size(); ++i) {
    const absl::StatusOr<durable::CheckpointManifest> manifest =
        store_.ReadManifest(steps[i]);
    if (absl::IsNotFound(manifest.status())) continue;  // pruned meanwhile
    if (absl::IsDataLoss(manifest.status())) {
      listing.push_back({.step = steps[i], .damaged = true});
      Refuse(listing.back(), manifest.status());
      continue;
    }
    RETURN_IF_ERROR(manifest.status());
    listing.push_back({.step = steps[i],
                       .created_unix_micros = manifest->created_unix_micros(),
                       .final = manifest->final()});
  }
  return listing;
}

bool ModelVersions::Try(const ListedCheckpoint& checkpoint) {
  absl::StatusOr<std::shared_ptr<ServedModel>> model =
      load_(store_.PathOf(checkpoint.step));
  if (model.ok()) {
    Swap(checkpoint, *std::move(model));
    return true;
  }
  if (MayPass(model.status())) {
    LOG_EVERY(WARNING, kLogInterval)
        << model.status().message() << "; will try again";
    return false;
  }
  Refuse(checkpoint, model.status());
  return true;
}

void ModelVersions::Swap(const ListedCheckpoint& checkpoint,
                         std::shared_ptr<ServedModel> model) {
  metrics_.loads.Add();
  metrics_.version.Set(static_cast<double>(model->version()));
  std::shared_ptr<ServedModel> before;
  {
    absl::MutexLock lock(&mu_);
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

void ModelVersions::Refuse(const ListedCheckpoint& checkpoint,
                           const absl::Status& reason) {
  std::shared_ptr<ServedModel> served;
  {
    absl::MutexLock lock(&mu_);
    if (!policy_.Refuse(checkpoint, reason)) return;
    served = current_;
  }
  last_refusal_ = reason;
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
  LOG(INFO) << "waiting for the first checkpoint in " << options_.directory;
}

void ModelVersions::FreeRetired() {
  std::erase_if(retired_, [](const std::shared_ptr<ServedModel>& model) {
    return model.use_count() == 1;
  });
}

}  // namespace parasol
