#include "chief/membership.h"

#include <algorithm>
#include <climits>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace parasol {

Membership::Membership(const std::vector<TaskId>& places, absl::Duration lease,
                       absl::Time now)
    : lease_(lease) {
  for (const TaskId& id : places) members_[id].absent_since = now;
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
  const std::deque<uint64_t>& replaced = it->second.replaced;
  if (std::find(replaced.begin(), replaced.end(), task.incarnation()) !=
      replaced.end()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "another process has registered as ", id.ToString(),
        " after this one; run one process for each task of TF_CONFIG"));
  }
  return &it->second;
}

absl::StatusOr<Membership::Registration> Membership::Register(
    const wire::Task& task, absl::string_view metrics_address, absl::Time now) {
  ASSIGN_OR_RETURN(Member * member, Find(task));
  Registration registration;
  if (member->incarnation == task.incarnation()) {
    registration.is_resend = member->alive;
  } else if (member->incarnation != 0) {
    registration.replaced = member->incarnation;
    member->replaced.push_back(member->incarnation);
    if (member->replaced.size() > kMaxReplaced) member->replaced.pop_front();
  }
  member->incarnation = task.incarnation();
  SetAlive(TaskId::Of(task), *member, true);
  member->lost = false;
  member->lease_end = now + lease_;
  member->metrics_address = std::string(metrics_address);
  return registration;
}

absl::Status Membership::Renew(const wire::Task& task, absl::Time now) {
  ASSIGN_OR_RETURN(Member * member, Find(task));
  if (!member->alive || member->incarnation != task.incarnation()) {
    return absl::NotFoundError(
        absl::StrCat(TaskId::Of(task).ToString(), " is not registered"));
  }
  member->lease_end = now + lease_;
  return absl::OkStatus();
}

absl::Status Membership::Leave(const wire::Task& task, absl::Time now) {
  RETURN_IF_ERROR(Renew(task, now));
  Member& member = members_[TaskId::Of(task)];
  SetAlive(TaskId::Of(task), member, false);
  member.lost = false;
  member.absent_since = now;
  return absl::OkStatus();
}

std::vector<Membership::Lost> Membership::Expire(absl::Time now) {
  std::vector<Lost> lost;
  for (auto& [id, member] : members_) {
    if (!member.alive || now < member.lease_end) continue;
    SetAlive(id, member, false);
    member.lost = true;
    member.absent_since = now;
    lost.push_back({id, member.incarnation});
  }
  return lost;
}

void Membership::Extend(absl::Duration time) {
  for (auto& [id, member] : members_) member.lease_end += time;
}

int Membership::CountStaying() const {
  return std::count_if(members_.begin(), members_.end(), [](const auto& entry) {
    return entry.second.alive || entry.second.lost;
  });
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
