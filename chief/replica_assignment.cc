#include "chief/replica_assignment.h"

#include <algorithm>

namespace parasol {

void ReplicaAssignment::Join(uint64_t worker, int place) {
  if (Has(worker)) return;
  workers_.push_back(worker);
  places_[worker] = place;
  ++version_;
  if (workers_.size() == 1) {
    std::fill(owners_.begin(), owners_.end(), worker);
    return;
  }
  const int total = static_cast<int>(owners_.size());
  for (int i = 0; i < per_place_; ++i) {
    const int replica = place * per_place_ + i;
    if (replica < total) owners_[replica] = worker;
  }
  const int fair_share = total / static_cast<int>(workers_.size());
  while (CountOf(worker) < fair_share) owners_[LastOf(WithMost())] = worker;
}

void ReplicaAssignment::Lose(uint64_t worker) {
  if (std::erase(workers_, worker) == 0) return;
  places_.erase(worker);
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

bool ReplicaAssignment::IsAtHome(int replica) const {
  return per_place_ > 0 &&
         places_.at(*owners_[replica]) == replica / per_place_;
}

int ReplicaAssignment::LastOf(uint64_t worker) const {
  const std::vector<int> replicas = ReplicasOf(worker);
  const auto guest =
      std::find_if(replicas.rbegin(), replicas.rend(),
                   [this](int replica) { return !IsAtHome(replica); });
  return guest == replicas.rend() ? replicas.back() : *guest;
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
