// The part of the coordinator that has ps act for lost ones, and the entries of
// ps and what they say.
#include <optional>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "coordinator/coordinator.h"

namespace parasol {
namespace {

bool IsReal(uint64_t standby) {
  return standby != StandbyBoard::kSaved && standby != StandbyBoard::kAlone;
}

}  // namespace

absl::Status Coordinator::CheckEntry(const wire::RegisterRequest& request,
                                     absl::Time now) {
  const wire::Task& task = request.task();
  if (task.has_host_index()) return CheckActing(request, now);
  const TaskId id = TaskId::Of(task);
  if (task.role() != "ps" || membership_.IsAt(id, task.incarnation()) ||
      request.place_epoch() != 0 || !MayActingReturn(task.index(), now)) {
    return absl::OkStatus();
  }
  acting_.NoteComer(task.index(), now);
  LoseActing(task.index(), now);
  return absl::UnavailableError(
      absl::StrCat("ps/", *acting_.HostAt(task.index()), " acts for ",
                   id.ToString(), ", and hands over with the next checkpoint"));
}

absl::Status Coordinator::CheckActing(const wire::RegisterRequest& request,
                                      absl::Time now) const {
  const wire::Task& task = request.task();
  const TaskId id = TaskId::Of(task);
  const std::string what = absl::StrCat("ps/", task.host_index(),
                                        " is not to act for ", id.ToString());
  if (task.role() != "ps" || request.acting_address().empty() ||
      !standbys_.is_used() || standbys_.HostOf(id.index) != task.host_index()) {
    return absl::FailedPreconditionError(what);
  }
  if (membership_.IsAt(id, task.incarnation())) return absl::OkStatus();
  // An earlier chief has let it in.
  if (request.place_epoch() != 0 &&
      (acting_.HostAt(id.index) == task.host_index() ||
       !membership_.members().at(id).alive)) {
    return absl::OkStatus();
  }
  if (!IsActingWanted(id.index, now) ||
      request.acting_order() != standbys_.KeptFor(id.index)) {
    return absl::FailedPreconditionError(absl::StrCat(what, " any more"));
  }
  return absl::OkStatus();
}

bool Coordinator::IsActingWanted(int ps_index, absl::Time now) const {
  const auto member = membership_.members().find({"ps", ps_index});
  if (!standbys_.is_used() || !ShardOfPs(ps_index) || phases_.HasEnded() ||
      phases_.HasGivenUp() || orders_.stopped() ||
      member == membership_.members().end() || member->second.alive ||
      MayActingReturn(ps_index, now)) {
    return false;
  }
  const absl::Duration absent = now - member->second.absent_since;
  if (IsReal(standbys_.KeptFor(ps_index))) {
    if (MayBringBack(ps_index, now)) return false;
    if (acting_.IsNobody(ps_index)) return true;
    const bool is_nobody =
        member->second.incarnation == 0 && absent >= options_.lease;
    return (member->second.lost || is_nobody) && membership_.IsReached(now);
  }
  // Whoever it has handed over to has not come.
  return acting_.HasLeft(ps_index) && absent >= options_.lease &&
         standbys_.KeptFor(ps_index) == StandbyBoard::kSaved &&
         orders_.schedule().newest_step().has_value();
}

bool Coordinator::MayBeActedFor() const {
  if (!standbys_.is_used()) return false;
  for (size_t shard = 0; shard < NumPsShards(options_); ++shard) {
    const int index = board_.shard(shard).ps_index;
    const auto host =
        membership_.members().find({"ps", standbys_.HostOf(index)});
    if (!board_.IsReadyAt(shard, board_.incarnation(shard)) &&
        IsReal(standbys_.KeptFor(index)) &&
        host != membership_.members().end() && host->second.alive) {
      return true;
    }
  }
  return false;
}

bool Coordinator::MayBringBack(int host, absl::Time now) const {
  for (const auto& [index, of_index] : acting_.hosts()) {
    if (of_index == host && MayActingReturn(index, now)) return true;
  }
  for (size_t shard = 0; shard < NumPsShards(options_); ++shard) {
    const int index = board_.shard(shard).ps_index;
    if (index != host && standbys_.HostOf(index) == host &&
        IsReal(standbys_.KeptFor(index)) &&
        !(board_.HoldsShard(shard) &&
          board_.IsAt(shard, board_.incarnation(shard)))) {
      return true;
    }
  }
  return false;
}

// As long as a process is waited for that began to join before another one.
bool Coordinator::MayActingReturn(int ps_index, absl::Time now) const {
  if (!acting_.HostAt(ps_index)) return false;
  const auto member = membership_.members().find({"ps", ps_index});
  if (member == membership_.members().end()) return false;
  if (phases_.HasEnded()) return member->second.alive;
  return member->second.alive || now - member->second.absent_since <
                                     Membership::kPrecedence * options_.lease;
}

void Coordinator::Enter(const wire::RegisterRequest& request, bool is_new,
                        absl::Time now) {
  const wire::Task& task = request.task();
  std::optional<int> host;
  if (task.has_host_index()) host = task.host_index();
  // Another process of a host has nothing of those that acted in the one
  // before.
  if (is_new && !host && request.place_epoch() == 0) {
    LoseActing(task.index(), now);
  }
  acting_.Entered(task.index(), host);
  // Nothing is loaded to a process that may be dead already.
  if (!membership_.IsSettled(TaskId::Of(task))) return;
  board_.ServesAt(task.index(), host, request.acting_address());
  board_.Arrived(task.index(), task.incarnation(),
                 IsOurs(request.run_id(), request.layout()));
}

void Coordinator::LoseActing(int host, absl::Time now) {
  for (const int place : acting_.HostIsGone(host)) {
    const auto lost = membership_.Lose({"ps", place}, now);
    if (lost) Depart(lost->id, lost->incarnation, now);
  }
}

absl::Status Coordinator::ForActedFor(const wire::Task& task,
                                      absl::Status status) const {
  if (!absl::IsFailedPrecondition(status) || task.role() != "ps" ||
      task.has_host_index()) {
    return status;
  }
  if (!acting_.WasActedFor(task.index())) return status;
  return absl::AlreadyExistsError(
      absl::StrCat("another ps acts for ", TaskId::Of(task).ToString(),
                   ", which was lost for a while; start it again"));
}

void Coordinator::HearPs(const wire::HeartbeatRequest& request, absl::Time now,
                         wire::HeartbeatResponse& response) {
  const wire::Task& task = request.task();
  if (request.has_standby()) HearOfStandby(request, response);
  if (request.leaving()) handing_over_.erase(task.incarnation());
  const bool hands_over =
      task.has_host_index() && acting_.HasComer(task.index(), now);
  if (hands_over && !request.leaving()) {
    handing_over_.insert(task.incarnation());
  }
  if (request.leaving() || handing_over_.contains(task.incarnation())) {
    orders_.AskToLeave(task.incarnation(), now);
    response.set_may_leave(orders_.leaving().MayLeave(task.incarnation()));
  }
  if (request.leaving()) {
    response.set_may_leave(response.may_leave() || phases_.HasEnded() ||
                           phases_.HasGivenUp() || orders_.stopped());
  }
  AddActingOrders(task, now, response);
}

// One that was told that it may leave is on its way: its shard stays until it
// has a successor.
void Coordinator::EndHandOvers(absl::Time now) {
  for (const auto& [index, host] : acting_.hosts()) {
    const auto member = membership_.members().find({"ps", index});
    if (member == membership_.members().end()) continue;
    const uint64_t incarnation = member->second.incarnation;
    if (!handing_over_.contains(incarnation) || acting_.HasComer(index, now) ||
        orders_.leaving().MayLeave(incarnation)) {
      continue;
    }
    handing_over_.erase(incarnation);
    orders_.Forget(incarnation);
  }
}

std::vector<Coordinator::Suspect> Coordinator::Suspects(
    const wire::HeartbeatRequest& request) const {
  std::vector<Suspect> suspects;
  if (!standbys_.is_used() || phases_.HasEnded() || phases_.HasGivenUp() ||
      orders_.stopped()) {
    return suspects;
  }
  std::set<int> found;
  for (const wire::LostPrimary& lost : request.lost_primary()) {
    if (lost.shard() < 0 ||
        static_cast<size_t>(lost.shard()) >= NumPsShards(options_)) {
      continue;
    }
    const ShardBoard::Shard& shard = board_.shard(lost.shard());
    if (found.contains(shard.ps_index)) continue;
    const auto member = membership_.members().find({"ps", shard.ps_index});
    if (member == membership_.members().end() ||
        standbys_.HostOf(shard.ps_index) != request.task().index() ||
        !IsReal(lost.number()) ||
        standbys_.KeptFor(shard.ps_index) != lost.number() ||
        acting_.HostAt(shard.ps_index) || acting_.IsNobody(shard.ps_index)) {
      continue;
    }
    const uint64_t incarnation = member->second.incarnation;
    if (incarnation != 0 && !member->second.alive) continue;
    found.insert(shard.ps_index);
    suspects.push_back({shard.ps_index, incarnation, shard.address});
  }
  return suspects;
}

bool Coordinator::NoteGone(const Suspect& suspect, absl::Time now) {
  const TaskId id = {"ps", suspect.ps_index};
  const auto member = membership_.members().find(id);
  if (member == membership_.members().end() ||
      member->second.incarnation != suspect.incarnation) {
    return false;
  }
  acting_.NoteNobody(suspect.ps_index);
  const auto lost = membership_.Lose(id, now);
  if (!lost) return true;
  // Those that act in its process may live, and have the only copies of their
  // shards: they are heard until their leases end.
  Depart(lost->id, lost->incarnation, now);
  Advance(now);
  return true;
}

void Coordinator::AddActingOrders(const wire::Task& host, absl::Time now,
                                  wire::HeartbeatResponse& response) const {
  if (!standbys_.is_used() || host.role() != "ps" || host.has_host_index()) {
    return;
  }
  response.clear_act_for();
  for (size_t shard = 0; shard < NumPsShards(options_); ++shard) {
    const int index = board_.shard(shard).ps_index;
    if (index == host.index() || standbys_.HostOf(index) != host.index() ||
        !IsActingWanted(index, now)) {
      continue;
    }
    wire::ActingOrder& order = *response.add_act_for();
    order.set_ps_index(index);
    order.set_number(standbys_.KeptFor(index));
  }
}

}  // namespace parasol
