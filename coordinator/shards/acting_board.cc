#include "coordinator/shards/acting_board.h"

namespace parasol {

ActingBoard::ActingBoard(const Hosts& recorded) {
  for (const auto& [ps_index, host] : recorded) Entered(ps_index, host);
}

const ActingBoard::Acting* ActingBoard::Find(int ps_index) const {
  const auto found = acting_.find(ps_index);
  return found == acting_.end() ? nullptr : &found->second;
}

void ActingBoard::Entered(int ps_index, std::optional<int> host) {
  nobody_.erase(ps_index);
  if (!host) {
    acting_.erase(ps_index);
    acted_.erase(ps_index);
    return;
  }
  acted_.insert(ps_index);
  Acting& acting = acting_[ps_index];
  acting.host = *host;
  acting.has_left = false;
}

void ActingBoard::Left(int ps_index) {
  const auto found = acting_.find(ps_index);
  if (found != acting_.end()) found->second.has_left = true;
}

std::vector<int> ActingBoard::HostIsGone(int host) {
  std::vector<int> places;
  for (const auto& [ps_index, acting] : acting_) {
    if (acting.host == host && !acting.has_left) places.push_back(ps_index);
  }
  for (const int ps_index : places) acting_.erase(ps_index);
  return places;
}

std::optional<int> ActingBoard::HostAt(int ps_index) const {
  const Acting* const acting = Find(ps_index);
  if (acting == nullptr || acting->has_left) return std::nullopt;
  return acting->host;
}

bool ActingBoard::HasLeft(int ps_index) const {
  const Acting* const acting = Find(ps_index);
  return acting != nullptr && acting->has_left;
}

ActingBoard::Hosts ActingBoard::hosts() const {
  Hosts hosts;
  for (const auto& [ps_index, acting] : acting_) {
    if (!acting.has_left) hosts[ps_index] = acting.host;
  }
  return hosts;
}

void ActingBoard::NoteComer(int ps_index, absl::Time now) {
  const auto found = acting_.find(ps_index);
  if (found != acting_.end()) found->second.comer_at = now;
}

bool ActingBoard::HasComer(int ps_index, absl::Time now) const {
  const Acting* const acting = Find(ps_index);
  return acting != nullptr && now - acting->comer_at < kComerPatience;
}

}  // namespace parasol
