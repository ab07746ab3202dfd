#include "tests/simulation/disk.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace parasol::simulation {

absl::Status Disk::CheckWrite(Random& random) const {
  if (write_errors_ && random.Chance(500)) {
    return absl::UnavailableError("input/output error");
  }
  return absl::OkStatus();
}

absl::Status Disk::CheckRead(Random& random) const {
  if (read_errors_ && random.Chance(500)) {
    return absl::UnavailableError("input/output error");
  }
  return absl::OkStatus();
}

std::vector<int64_t> Disk::Steps() const {
  std::vector<int64_t> steps;
  for (auto it = checkpoints_.rbegin(); it != checkpoints_.rend(); ++it) {
    steps.push_back(it->first);
  }
  return steps;
}

absl::StatusOr<const Checkpoint*> Disk::Read(int64_t step,
                                             Random& random) const {
  const absl::Status read = CheckRead(random);
  if (!read.ok()) return read;
  const auto it = checkpoints_.find(step);
  if (it == checkpoints_.end()) {
    return absl::NotFoundError(absl::StrCat("checkpoint ", step));
  }
  if (it->second.damaged) {
    return absl::DataLossError(absl::StrCat("checkpoint ", step));
  }
  return &it->second;
}

absl::Status Disk::Commit(Checkpoint checkpoint, Random& random) {
  const absl::Status written = CheckWrite(random);
  if (!written.ok()) return written;
  checkpoints_[checkpoint.manifest.global_step()] = std::move(checkpoint);
  return absl::OkStatus();
}

void Disk::Prune(int max_to_keep, int64_t newest) {
  if (max_to_keep <= 0) return;
  const auto end = checkpoints_.upper_bound(newest);
  int64_t excess = std::distance(checkpoints_.begin(), end) - max_to_keep;
  for (; excess > 0; --excess) checkpoints_.erase(checkpoints_.begin());
}

int64_t Disk::DamageNewest() {
  const int64_t intact =
      std::count_if(checkpoints_.begin(), checkpoints_.end(),
                    [](const auto& entry) { return !entry.second.damaged; });
  if (intact < 2) return -1;
  const Checkpoint& newest = checkpoints_.rbegin()->second;
  if (newest.damaged || newest.manifest.final()) return -1;
  checkpoints_.rbegin()->second.damaged = true;
  return checkpoints_.rbegin()->first;
}

int64_t Disk::NewestIntact(const std::string& run_id) const {
  for (auto it = checkpoints_.rbegin(); it != checkpoints_.rend(); ++it) {
    const Checkpoint& checkpoint = it->second;
    if (!checkpoint.damaged && checkpoint.manifest.run_id() == run_id) {
      return it->first;
    }
  }
  return -1;
}

}  // namespace parasol::simulation
