#include "coordinator/shards/leaving_ps.h"

namespace parasol {

bool LeavingPs::Ask(uint64_t incarnation, absl::Time now) {
  const bool stays = staying_.contains(incarnation);
  const Wait wait = stays ? Wait::kWritten : Wait::kAsked;
  const bool is_first = waiting_.try_emplace(incarnation, wait).second;
  if (!is_first || stays) return false;
  asked_at_ = now;
  return true;
}

bool LeavingPs::NeedCheckpoint() const {
  for (const auto& [incarnation, wait] : waiting_) {
    if (wait == Wait::kAsked) return true;
  }
  return false;
}

void LeavingPs::Ordered() {
  for (auto& [incarnation, wait] : waiting_) {
    if (wait == Wait::kAsked) wait = Wait::kOrdered;
  }
}

void LeavingPs::Done(bool is_written) {
  for (auto& [incarnation, wait] : waiting_) {
    if (wait != Wait::kOrdered) continue;
    wait = is_written ? Wait::kWritten : Wait::kAsked;
  }
}

void LeavingPs::Stay(const std::vector<uint64_t>& incarnations) {
  staying_.clear();
  staying_.insert(incarnations.begin(), incarnations.end());
  for (auto& [incarnation, wait] : waiting_) {
    if (staying_.contains(incarnation)) wait = Wait::kWritten;
  }
}

bool LeavingPs::MayLeave(uint64_t incarnation) const {
  const auto it = waiting_.find(incarnation);
  return it != waiting_.end() && it->second == Wait::kWritten;
}

}  // namespace parasol
