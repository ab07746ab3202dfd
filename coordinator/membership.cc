#include "coordinator/membership.h"

#include <algorithm>
#include <climits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace parasol {

namespace {

// A chief gives the place epochs (chief_epoch << kEpochShift) + 1 and
// following, fewer than kMaxProcesses in its life. A process may not bring a
// larger one: the epochs of the processes after it would be another chief's.
constexpr int kEpochShift = 32;
constexpr int64_t kMaxProcesses = int64_t{1} << 31;

// Returns " (host7, process 4242)"; nothing of a process without a name.
std::string InBrackets(const std::string& process) {
  return process.empty() ? "" : absl::StrCat(" (", process, ")");
}

absl::Status Replaced(const TaskId& id, const std::string& by) {
  return absl::FailedPreconditionError(absl::StrCat(
      "another process", InBrackets(by), " has registered as ", id.ToString(),
      " after this one; run one process for each task of TF_CONFIG"));
}

}  // namespace

bool Membership::JoinTime::IsBefore(const JoinTime& other) const {
  if (!boot_id.empty() && boot_id == other.boot_id) {
    return boot_micros < other.boot_micros;
  }
  return clock > absl::InfinitePast() && clock < other.clock;
}

Membership::Arrival Membership::Arrival::Of(
    const wire::RegisterRequest& request) {
  Arrival arrival = {.epoch = request.place_epoch(),
                     .metrics_address = request.metrics_address(),
                     .collective_address = request.collective_address(),
                     .process = request.process(),
                     .acts = request.task().has_host_index()};
  // One that acts for a lost process follows that one, whatever clocks say.
  if (request.task().has_host_index()) return arrival;
  if (request.join_unix_micros() > 0) {
    arrival.joined_at.clock = absl::FromUnixMicros(request.join_unix_micros());
  }
  arrival.joined_at.boot_id = request.boot_id();
  arrival.joined_at.boot_micros = request.join_boot_micros();
  return arrival;
}

Membership::Membership(const Options& options, absl::Time now)
    : lease_(options.lease),
      chief_epoch_(options.chief_epoch),
      heard_at_(now),
      reached_since_(now) {
  for (const TaskId& id : options.places) members_[id].absent_since = now;
  for (const auto& [id, epoch] : options.newest_epochs) {
    const auto member = members_.find(id);
    if (member != members_.end()) member->second.epoch = epoch;
  }
}

absl::StatusOr<Membership::Member*> Membership::Find(const wire::Task& task) {
  const TaskId id = TaskId::Of(task);
  auto it = members_.find(id);
  if (it == members_.end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        id.ToString(), " is not in the cluster of the chief's TF_CONFIG"));
  }
  if (task.incarnation() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(id.ToString(), " has no incarnation"));
  }
  Member& member = it->second;
  for (const Former& former : member.replaced) {
    if (former.incarnation != task.incarnation()) continue;
    if (former.is_of_acting) return Replaced(id, member.process);
    member.doubled = absl::StrCat(
        "two processes run as it: the one", InBrackets(member.process),
        " that came last has its place, the one", InBrackets(former.process),
        " before is told to end");
    return Replaced(id, member.process);
  }
  if (member.predecessor == task.incarnation()) {
    member.predecessor_is_heard = true;
    return absl::UnavailableError(absl::StrCat(
        "another process", InBrackets(member.process), " has registered as ",
        id.ToString(), " after this one, and is yet to be heard again"));
  }
  return &member;
}

void Membership::Replace(Member& member, Former former) {
  member.replaced.push_back(std::move(former));
  if (member.replaced.size() > kMaxReplaced) member.replaced.pop_front();
}

absl::StatusOr<int64_t> Membership::EpochOf(const wire::Task& task,
                                            const Member& member,
                                            const Arrival& arrival) const {
  const TaskId id = TaskId::Of(task);
  const int64_t epoch = arrival.epoch;
  // Epochs that this chief has given go on from the largest that was brought.
  const bool is_absurd = epoch > member.epoch &&
                         epoch % (int64_t{1} << kEpochShift) > kMaxProcesses;
  if (epoch < 0 || is_absurd) {
    return absl::InvalidArgumentError(
        absl::StrCat(id.ToString(), " registers with the place epoch ", epoch,
                     ", which no chief gives; start this process again"));
  }
  if (epoch >> kEpochShift > chief_epoch_) {
    return absl::UnavailableError(absl::StrCat(
        id.ToString(), " has registered with chief ", epoch >> kEpochShift,
        ": this one, chief ", chief_epoch_, ", has been replaced"));
  }
  if (member.incarnation == task.incarnation()) {
    return std::max(member.epoch, epoch);
  }
  if (epoch == 0) {
    return std::max(member.epoch, chief_epoch_ << kEpochShift) + 1;
  }
  // The newest process itself, with a chief that has restarted.
  const bool is_newest = epoch == member.epoch && member.incarnation == 0;
  if (epoch > member.epoch || is_newest) return epoch;
  // The holder is new to every chief, but no newer process than this one, which
  // an earlier chief knew.
  const bool holder_is_new = member.epoch >> kEpochShift == chief_epoch_ &&
                             epoch >> kEpochShift < chief_epoch_;
  if (holder_is_new && member.joined_at.IsBefore(arrival.joined_at)) {
    return member.epoch + 1;
  }
  return Replaced(id, member.process);
}

bool Membership::HasPrecedence(const Member& member, const Arrival& arrival,
                               absl::Time now) const {
  if (arrival.epoch != 0 || !arrival.joined_at.IsBefore(member.joined_at)) {
    return false;
  }
  // The silence of a chief that is cut off from all is nobody's loss.
  const absl::Time silent_since = std::max(member.absent_since, reached_since_);
  return member.alive ||
         (member.lost && now - silent_since < kPrecedence * lease_);
}

void Membership::Hear(absl::Time now) {
  if (now - heard_at_ >= lease_) reached_since_ = now;
  heard_at_ = now;
}

absl::StatusOr<Membership::Registration> Membership::Register(
    const wire::Task& task, const Arrival& presented, absl::Time now) {
  ASSIGN_OR_RETURN(Member * member, Find(task));
  Hear(now);
  Arrival arrival = presented;
  if (arrival.joined_at.clock > now + kMaxClockError) {
    arrival.joined_at.clock = absl::InfinitePast();
  }
  Registration registration;
  ASSIGN_OR_RETURN(registration.epoch, EpochOf(task, *member, arrival));
  const bool is_other = member->incarnation != task.incarnation();
  if (is_other && HasPrecedence(*member, arrival, now)) {
    return absl::UnavailableError(absl::StrCat(
        "a process", InBrackets(member->process),
        " that was started after this one is ", TaskId::Of(task).ToString(),
        ": this one waits until it is gone"));
  }
  if (is_other && member->incarnation != 0) {
    registration.replaced = member->incarnation;
    registration.replaced_was_alive = member->alive;
    if (member->alive && member->predecessor == 0) {
      member->predecessor = member->incarnation;
      member->predecessor_process = member->process;
      member->predecessor_acts = member->acts;
      member->predecessor_epoch = member->epoch;
      member->predecessor_is_heard = false;
      member->predecessor_joined_at = member->joined_at;
    } else {
      Replace(*member, {member->incarnation, member->process,
                        member->acts || arrival.acts});
    }
    member->doubled.clear();
  }
  member->incarnation = task.incarnation();
  member->epoch = registration.epoch;
  SetAlive(TaskId::Of(task), *member, true);
  member->lost = false;
  member->lease_end = now + lease_;
  member->metrics_address = arrival.metrics_address;
  member->collective_address = arrival.collective_address;
  member->process = arrival.process;
  member->acts = arrival.acts;
  member->joined_at = arrival.joined_at;
  return registration;
}

absl::Status Membership::Renew(const wire::Task& task, absl::Time now) {
  ASSIGN_OR_RETURN(Member * member, Find(task));
  if (member->incarnation == task.incarnation()) Hear(now);
  if (!member->alive || member->incarnation != task.incarnation()) {
    return absl::NotFoundError(
        absl::StrCat(TaskId::Of(task).ToString(), " is not registered"));
  }
  member->lease_end = now + lease_;
  if (member->predecessor != 0) {
    Replace(*member,
            {std::exchange(member->predecessor, 0), member->predecessor_process,
             member->acts || member->predecessor_acts});
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> Membership::Leave(const wire::Task& task, absl::Time now) {
  ASSIGN_OR_RETURN(Member * member, Find(task));
  const bool was_lost =
      member->lost && member->incarnation == task.incarnation();
  if (was_lost) {
    Hear(now);
  } else {
    RETURN_IF_ERROR(Renew(task, now));
    SetAlive(TaskId::Of(task), *member, false);
    member->absent_since = now;
  }
  member->lost = false;
  return !was_lost;
}

std::vector<Membership::Lost> Membership::Expire(absl::Time now) {
  std::vector<Lost> lost;
  for (auto& [id, member] : members_) {
    if (!member.alive || now < member.lease_end) continue;
    lost.push_back(End(id, member, now));
  }
  return lost;
}

std::optional<Membership::Lost> Membership::Lose(const TaskId& id,
                                                 absl::Time now) {
  const auto member = members_.find(id);
  if (member == members_.end() || !member->second.alive) return std::nullopt;
  return End(id, member->second, now);
}

Membership::Lost Membership::End(const TaskId& id, Member& member,
                                 absl::Time now) {
  const Lost lost = {id, member.incarnation};
  SetAlive(id, member, false);
  member.lost = true;
  member.absent_since = now;
  if (member.predecessor == 0) return lost;
  const uint64_t predecessor = std::exchange(member.predecessor, 0);
  const bool is_of_acting = member.acts || member.predecessor_acts;
  if (!member.predecessor_is_heard ||
      member.predecessor_joined_at.IsBefore(member.joined_at)) {
    Replace(member, {predecessor, member.predecessor_process, is_of_acting});
    return lost;
  }
  Replace(member, {member.incarnation, member.process, is_of_acting});
  member.incarnation = predecessor;
  member.process = member.predecessor_process;
  member.acts = member.predecessor_acts;
  member.joined_at = member.predecessor_joined_at;
  // Its predecessor is to have the larger one, wherever both come.
  ++member.epoch;
  return lost;
}

void Membership::Extend(absl::Duration time) {
  for (auto& [id, member] : members_) member.lease_end += time;
}

std::vector<TaskId> Membership::Staying() const {
  std::vector<TaskId> staying;
  for (const auto& [id, member] : members_) {
    if (member.alive || member.lost) staying.push_back(id);
  }
  return staying;
}

int Membership::CountAlive(absl::string_view role) const {
  const auto it = alive_.find(role);
  return it == alive_.end() ? 0 : it->second;
}

void Membership::SetAlive(const TaskId& id, Member& member, bool alive) {
  alive_[id.role] += static_cast<int>(alive) - static_cast<int>(member.alive);
  member.alive = alive;
}

std::vector<TaskId> Membership::Absent(absl::string_view role) const {
  std::vector<TaskId> absent;
  for (auto it = members_.lower_bound(TaskId{std::string(role), INT_MIN});
       it != members_.end() && it->first.role == role; ++it) {
    if (!it->second.alive) absent.push_back(it->first);
  }
  return absent;
}

}  // namespace parasol
