#include "chief/replica_assignment.h"

#include <algorithm>

namespace parasol {

void ReplicaAssignment::Join(uint64_t worker) {
  if (Has(worker)) return;
  workers_.push_back(worker);
  ++version_;
  if (workers_.size() == 1) {
    std::fill(owners_.begin(), owners_.end(), worker);
    return;
  }
  const int fair_share = static_cast<int>(owners_.size() / workers_.size());
  while (CountOf(worker) < fair_share) {
    // The last one of whoever has most.
    *std::find(owners_.rbegin(), owners_.rend(), WithMost()) = worker;
  }
}

void ReplicaAssignment::Lose(uint64_t worker) {
  if (std::erase(workers_, worker) == 0) return;
  ++version_;
  for (std::optional<uint64_t>& owner : owners_) {
    if (owner != worker) continue;
    owner.reset();
    if (!workers_.empty()) owner = WithFewest();
  }
}

bool ReplicaAssignment::Has(uint64_t worker) const {
  return std::count(workers_.begin(), workers_.end(), worker) > 0;
}

std::vector<int> ReplicaAssignment::ReplicasOf(uint64_t worker) const {
  std::vector<int> replicas;
  for (size_t i = 0; i < owners_.size(); ++i) {
    if (owners_[i] == worker) replicas.push_back(static_cast<int>(i));
  }
  return replicas;
}

int ReplicaAssignment::CountOf(std::optional<uint64_t> worker) const {
  return static_cast<int>(std::count(owners_.begin(), owners_.end(), worker));
}

uint64_t ReplicaAssignment::WithFewest() const {
  return *std::min_element(
      workers_.begin(), workers_.end(),
      [this](uint64_t a, uint64_t b) { return CountOf(a) < CountOf(b); });
}

uint64_t ReplicaAssignment::WithMost() const {
  return *std::max_element(
      workers_.begin(), workers_.end(),
      [this](uint64_t a, uint64_t b) { return CountOf(a) < CountOf(b); });
}

}  // namespace parasol
