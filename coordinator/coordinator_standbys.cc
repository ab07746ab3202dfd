// The part of the coordinator that has to do with the standbys of shards.
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cluster/trust/process_secret.h"
#include "cluster/trust/standby_ticket.h"
#include "coordinator/coordinator.h"

namespace parasol {

std::optional<size_t> Coordinator::ShardOfPs(int ps_index) const {
  for (size_t shard = 0; shard < NumPsShards(options_); ++shard) {
    if (board_.shard(shard).ps_index == ps_index) return shard;
  }
  return std::nullopt;
}

void Coordinator::HearOfStandby(const wire::HeartbeatRequest& request,
                                wire::HeartbeatResponse& response) {
  const int index = request.task().index();
  const std::optional<size_t> shard = ShardOfPs(index);
  if (!standbys_.is_used() || !shard) return;
  // What another process has left is kept until the shard is there again.
  if (!board_.IsReadyAt(*shard, request.task().incarnation())) return;
  standbys_.Hear(index, request.standby());
  const int host_index = standbys_.HostOf(index);
  const std::optional<size_t> host = ShardOfPs(host_index);
  if (host_index == index || !host ||
      !board_.IsAt(*host, board_.incarnation(*host))) {
    return;
  }
  wire::StandbyPlace& place = *response.mutable_standby_host();
  place.set_address(board_.shard(*host).address);
  place.set_ps_incarnation(PublicNumber(board_.incarnation(*host)));
  place.set_number(StandbyTicket(static_cast<uint32_t>(*shard),
                                 static_cast<uint32_t>(NumPsShards(options_)),
                                 board_.incarnation(*host)));
  place.set_task(TaskId{"ps", host_index}.ToString());
}

void Coordinator::AddStandbys(LoadOrder& order) {
  std::vector<LoadOrder::Target> targets;
  for (LoadOrder::Target& target : order.targets) {
    const int index = board_.shard(target.shard).ps_index;
    if (ShardOfPs(index) != target.shard) {
      targets.push_back(target);
      continue;
    }
    wire::StandbyPlace place;
    place.set_number(standbys_.KeptFor(index));
    if (place.number() != StandbyBoard::kSaved &&
        place.number() != StandbyBoard::kAlone) {
      const std::optional<size_t> host = ShardOfPs(standbys_.HostOf(index));
      // It may have the standby, and be heard again.
      const bool is_there =
          host && board_.IsAt(*host, board_.incarnation(*host));
      if (!is_there && !target.holds_shard) continue;
      place.set_address(board_.shard(*host).address);
      place.set_ps_incarnation(PublicNumber(board_.incarnation(*host)));
      place.set_task(TaskId{"ps", standbys_.HostOf(index)}.ToString());
    }
    target.standby = std::move(place);
    targets.push_back(std::move(target));
  }
  order.targets = std::move(targets);
  if (!order.targets.empty()) standbys_.GoOn();
}

}  // namespace parasol
