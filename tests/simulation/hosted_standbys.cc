#include "tests/simulation/hosted_standbys.h"

#include <utility>

namespace parasol::simulation {

absl::Status HostedStandbys::Follow(const ShardValues& values,
                                    int64_t place_epoch, uint64_t number) {
  const auto before = standbys_.find(values.shard);
  if (before != standbys_.end() && place_epoch < before->second.newest_epoch) {
    return absl::FailedPreconditionError("a newer process has the place");
  }
  standbys_.erase(values.shard);
  Standby& standby = standbys_[values.shard];
  standby.number = number;
  standby.newest_epoch = place_epoch;
  standby.values = values;
  standby.dedup.Restore(values.windows);
  return absl::OkStatus();
}

absl::StatusOr<int64_t> HostedStandbys::Append(
    int shard, uint64_t number, int64_t first,
    const std::vector<StandbyRecord>& records) {
  const auto found = standbys_.find(shard);
  if (found == standbys_.end() || found->second.number != number ||
      !found->second.is_open || found->second.records != first) {
    return absl::FailedPreconditionError("it follows this stream no more");
  }
  Standby& standby = found->second;
  for (const StandbyRecord& record : records) {
    standby.dedup.Mark(record.worker, record.sequence).IgnoreError();
    standby.dedup.Confirm(record.worker, record.sequence);
    standby.values.applied.Add(record.step);
    ++standby.records;
  }
  return standby.records;
}

bool HostedStandbys::EndStream(int shard, uint64_t number) {
  const auto found = standbys_.find(shard);
  if (found == standbys_.end() || found->second.number != number) return false;
  return std::exchange(found->second.is_open, false);
}

absl::StatusOr<ShardValues> HostedStandbys::Take(int shard, uint64_t number,
                                                 int64_t place_epoch,
                                                 bool itself) {
  const auto found = standbys_.find(shard);
  if (found == standbys_.end() || found->second.number != number) {
    return absl::NotFoundError("there is no such standby");
  }
  Standby& standby = found->second;
  if (place_epoch < standby.newest_epoch) {
    return absl::FailedPreconditionError("a newer process has taken it");
  }
  standby.newest_epoch = place_epoch;
  standby.is_open = false;
  ShardValues values = standby.values;
  values.windows = standby.dedup.Windows();
  if (itself) standby.number = 0;
  return values;
}

bool HostedStandbys::Has(int shard, uint64_t number) const {
  const auto found = standbys_.find(shard);
  return number != 0 && found != standbys_.end() &&
         found->second.number == number;
}

std::vector<wire::LostPrimary> HostedStandbys::LostPrimaries() const {
  std::vector<wire::LostPrimary> lost;
  for (const auto& [shard, standby] : standbys_) {
    if (standby.is_open || standby.number == 0) continue;
    wire::LostPrimary& primary = lost.emplace_back();
    primary.set_shard(shard);
    primary.set_number(standby.number);
  }
  return lost;
}

}  // namespace parasol::simulation
