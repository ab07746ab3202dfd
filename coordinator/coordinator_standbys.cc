// The part of the coordinator that has to do with the standbys of shards.
#include <optional>
#include <variant>
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
  // A standby protects from nothing in the process of its primary.
  if (board_.host(*host) == index || board_.host(*shard)) return;
  wire::StandbyPlace& place = *response.mutable_standby_host();
  place = PlaceAt(*host);
  place.set_number(StandbyTicket(static_cast<uint32_t>(*shard),
                                 static_cast<uint32_t>(NumPsShards(options_)),
                                 board_.incarnation(*host)));
}

// Whoever acts there has its host's keys.
wire::StandbyPlace Coordinator::PlaceAt(size_t host_shard) const {
  wire::StandbyPlace place;
  place.set_address(board_.address(host_shard));
  place.set_ps_incarnation(PublicNumber(board_.incarnation(host_shard)));
  const int index =
      board_.host(host_shard).value_or(board_.shard(host_shard).ps_index);
  place.set_task(TaskId{"ps", index}.ToString());
  return place;
}

void Coordinator::AddLostStandbys(const Order& order,
                                  CallsInVain& in_vain) const {
  const auto* const load = std::get_if<LoadOrder>(&order);
  if (load == nullptr) return;
  for (const LoadOrder::Target& target : load->targets) {
    if (!target.standby || target.standby->address().empty()) continue;
    const auto host =
        ShardOfPs(standbys_.HostOf(board_.shard(target.shard).ps_index));
    if (host && PublicNumber(board_.incarnation(*host)) !=
                    target.standby->ps_incarnation()) {
      in_vain.shards.push_back(target.shard);
    }
  }
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
      const uint64_t number = place.number();
      place = PlaceAt(*host);
      place.set_number(number);
    }
    target.standby = std::move(place);
    targets.push_back(std::move(target));
  }
  order.targets = std::move(targets);
  if (!order.targets.empty()) standbys_.GoOn();
}

}  // namespace parasol
