#include "tests/simulation/disk.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cluster/checkpoint/evaluation_decisions.h"

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

void Disk::Prune(int max_to_keep, int64_t newest, const KeptCheckpoints& kept) {
  if (max_to_keep <= 0) return;
  std::vector<int64_t> steps;
  for (const auto& [step, checkpoint] : checkpoints_) {
    if (step <= newest) steps.push_back(step);
  }
  for (const int64_t best : kept.best_first) {
    if (std::erase(steps, best) > 0) break;
  }
  if (kept.evaluated_to) {
    int64_t awaited = kept.awaited;
    std::erase_if(steps, [this, &kept, &awaited](int64_t step) {
      const Checkpoint& checkpoint = checkpoints_.at(step);
      return step > *kept.evaluated_to && !checkpoint.damaged &&
             IsToBeEvaluated(checkpoint.manifest) && awaited-- > 0;
    });
  }
  for (size_t i = 0; i + max_to_keep < steps.size(); ++i) {
    checkpoints_.erase(steps[i]);
  }
}

std::vector<Evaluation> Disk::Evaluations(
    const std::string& run_id, const std::optional<RunHistory>& history) const {
  std::map<int64_t, Evaluation> by_step;
  for (const Evaluation& evaluation : evaluations_) {
    if (evaluation.run_id != run_id) continue;
    if (history && !history->Has(evaluation)) continue;
    by_step[evaluation.global_step] = evaluation;
  }
  std::vector<Evaluation> evaluations;
  for (auto& [step, evaluation] : by_step) {
    evaluations.push_back(std::move(evaluation));
  }
  return evaluations;
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
