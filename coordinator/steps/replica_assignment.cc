#include "coordinator/steps/replica_assignment.h"

#include <algorithm>
#include <utility>

namespace parasol {

void ReplicaAssignment::Join(uint64_t worker, int place) {
  if (Has(worker)) return;
  workers_.push_back(worker);
  places_[worker] = place;
  replicas_[worker];
  ++version_;
  const int total = static_cast<int>(owners_.size());
  if (workers_.size() == 1) {
    for (int replica = 0; replica < total; ++replica) Give(replica, worker);
    return;
  }
  for (int i = 0; i < per_place_; ++i) {
    const int replica = place * per_place_ + i;
    if (replica < total) Give(replica, worker);
  }
  const int fair_share = total / static_cast<int>(workers_.size());
  while (CountOf(worker) < fair_share) Give(LastOf(WithMost()), worker);
}

void ReplicaAssignment::Lose(uint64_t worker) {
  if (std::erase(workers_, worker) == 0) return;
  places_.erase(worker);
  const std::set<int> replicas = std::move(replicas_.extract(worker).mapped());
  ++version_;
  for (const int replica : replicas) owners_[replica].reset();
  if (workers_.empty()) return;
  for (const int replica : replicas) Give(replica, WithFewest());
}

void ReplicaAssignment::Give(int replica, uint64_t worker) {
  std::optional<uint64_t>& owner = owners_[replica];
  if (owner) replicas_.at(*owner).erase(replica);
  owner = worker;
  replicas_.at(worker).insert(replica);
}

std::vector<int> ReplicaAssignment::ReplicasOf(uint64_t worker) const {
  const auto found = replicas_.find(worker);
  if (found == replicas_.end()) return {};
  return {found->second.begin(), found->second.end()};
}

int ReplicaAssignment::CountOf(uint64_t worker) const {
  return static_cast<int>(replicas_.at(worker).size());
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
