#include "worker/step/training_files.h"

#include <algorithm>
#include <iterator>

namespace parasol {
namespace {

int64_t EndOf(const wire::TrainingFile& file) {
  return file.first_batch() + file.batches();
}

}  // namespace

void TrainingFiles::StartOver() {
  absl::MutexLock lock(&mu_);
  known_ = 0;
  has_registered_ = true;
}

void TrainingFiles::Tell(wire::ClaimStepsRequest& request) {
  absl::MutexLock lock(&mu_);
  has_registered_ = false;
  request.set_known_batches(known_);
}

void TrainingFiles::Take(const wire::ClaimStepsResponse& response) {
  absl::MutexLock lock(&mu_);
  if (has_registered_) return;
  for (const wire::TrainingFile& file : response.file()) {
    if (file.batches() <= 0) continue;
    files_[file.first_batch()] = file;
    known_ = std::max(known_, EndOf(file));
  }
  trained_ = response.trained_batches();
  while (!files_.empty() && EndOf(files_.begin()->second) <= trained_) {
    files_.erase(files_.begin());
  }
}

std::optional<wire::TrainingFile> TrainingFiles::FileOf(int64_t batch) const {
  absl::MutexLock lock(&mu_);
  const auto behind = files_.upper_bound(batch);
  if (behind == files_.begin()) return std::nullopt;
  const wire::TrainingFile& file = std::prev(behind)->second;
  if (batch >= EndOf(file)) return std::nullopt;
  return file;
}

bool TrainingFiles::IsTrained(int64_t batch) const {
  absl::MutexLock lock(&mu_);
  return batch < trained_;
}

}  // namespace parasol
