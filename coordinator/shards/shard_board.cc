#include "coordinator/shards/shard_board.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cluster/trust/process_secret.h"

namespace parasol {

ShardBoard::ShardBoard(std::vector<Shard> shards, int64_t first_version)
    : version_(first_version) {
  for (Shard& shard : shards) places_.push_back({std::move(shard)});
}

ShardBoard::Place* ShardBoard::Find(int ps_index) {
  for (Place& place : places_) {
    if (place.shard.ps_index == ps_index) return &place;
  }
  return nullptr;
}

void ShardBoard::Arrived(int ps_index, uint64_t incarnation, bool holds_shard) {
  Place* place = Find(ps_index);
  if (place == nullptr) return;
  const bool is_same = place->incarnation == incarnation;
  if (is_same && place->state != State::kAbsent) return;
  place->incarnation = incarnation;
  place->holds_shard = holds_shard;
  place->was_loaded &= is_same;
  place->awaits_job &= is_same;
  place->state =
      holds_shard && place->was_loaded ? State::kReady : State::kEmpty;
  place->denials = 0;
  if (!is_same) ++version_;
}

bool ShardBoard::Heard(int ps_index, uint64_t incarnation, bool holds_shard) {
  Place* place = Find(ps_index);
  if (place == nullptr || place->incarnation != incarnation) return false;
  if (place->state != State::kReady) return false;
  place->denials = holds_shard ? 0 : place->denials + 1;
  if (place->denials < kDenials) return false;
  place->state = State::kEmpty;
  place->holds_shard = false;
  place->was_loaded = false;
  return true;
}

void ShardBoard::Lost(int ps_index) {
  if (Place* place = Find(ps_index)) place->state = State::kAbsent;
}

void ShardBoard::ServesAt(int ps_index, std::optional<int> host,
                          const std::string& address) {
  Place* place = Find(ps_index);
  if (place == nullptr) return;
  place->host = host;
  place->acting_address = address;
}

void ShardBoard::GiveJobAgain() {
  for (Place& place : places_) {
    // A ps that is away for a moment may come back with its shard.
    if (place.was_loaded) place.awaits_job = true;
  }
}

void ShardBoard::Loaded(size_t shard, uint64_t incarnation) {
  Place& place = places_[shard];
  if (!IsAt(shard, incarnation)) return;
  place.awaits_job = false;
  if (place.state == State::kReady) return;
  place.state = State::kReady;
  place.was_loaded = true;
  place.denials = 0;
  ++version_;
}

bool ShardBoard::IsAt(size_t shard, uint64_t incarnation) const {
  const Place& place = places_[shard];
  return place.state != State::kAbsent && place.incarnation == incarnation;
}

bool ShardBoard::IsReadyAt(size_t shard, uint64_t incarnation) const {
  return IsAt(shard, incarnation) && places_[shard].state == State::kReady;
}

bool ShardBoard::AllPresent() const {
  return std::none_of(places_.begin(), places_.end(), [](const Place& place) {
    return place.state == State::kAbsent;
  });
}

bool ShardBoard::AllReady() const {
  return std::all_of(places_.begin(), places_.end(), [](const Place& place) {
    return place.state == State::kReady;
  });
}

std::vector<size_t> ShardBoard::Empty() const {
  std::vector<size_t> empty;
  for (size_t i = 0; i < places_.size(); ++i) {
    if (places_[i].state == State::kEmpty) empty.push_back(i);
  }
  return empty;
}

std::vector<size_t> ShardBoard::AwaitingJob() const {
  std::vector<size_t> awaiting;
  for (size_t i = 0; i < places_.size(); ++i) {
    const Place& place = places_[i];
    if (place.state == State::kReady && place.awaits_job) awaiting.push_back(i);
  }
  return awaiting;
}

absl::StatusOr<wire::GetPlacementResponse> ShardBoard::Placement(
    const std::string& run_id, size_t count) const {
  wire::GetPlacementResponse response;
  response.set_run_id(run_id);
  response.set_placement_version(version_);
  std::vector<std::string> not_ready;
  for (size_t i = 0; i < std::min(count, places_.size()); ++i) {
    const Place& place = places_[i];
    wire::Shard* shard = response.add_shard();
    shard->set_address(address(i));
    if (place.host) shard->set_host_index(*place.host);
    shard->set_incarnation(PublicNumber(place.incarnation));
    shard->set_ps_index(place.shard.ps_index);
    shard->mutable_part()->Assign(place.shard.parts.begin(),
                                  place.shard.parts.end());
    shard->mutable_table()->Assign(place.shard.tables.begin(),
                                   place.shard.tables.end());
    if (place.state == State::kReady) continue;
    not_ready.push_back(absl::StrCat(
        "ps/", place.shard.ps_index,
        place.state == State::kEmpty ? " is being loaded" : " is missing"));
  }
  if (!not_ready.empty()) {
    return absl::UnavailableError(
        absl::StrCat("no placement yet: ", absl::StrJoin(not_ready, ", ")));
  }
  return response;
}

double ShardBoard::Skew() const {
  int64_t largest = 0;
  int64_t total = 0;
  for (const Place& place : places_) {
    int64_t elements = 0;
    for (const wire::PartSpec& part : place.shard.parts) {
      elements += part.elements();
    }
    largest = std::max(largest, elements);
    total += elements;
  }
  if (total == 0) return 1;
  return static_cast<double>(largest) * static_cast<double>(places_.size()) /
         static_cast<double>(total);
}

}  // namespace parasol
