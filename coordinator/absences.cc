#include "coordinator/absences.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace parasol {
namespace {

// Names in one message.
constexpr size_t kMaxNamed = 16;

std::string NamesOf(const std::vector<TaskId>& tasks, const TaskName& name_of) {
  std::vector<std::string> names;
  for (const TaskId& task : tasks) {
    if (names.size() == kMaxNamed) {
      names.push_back(absl::StrCat(tasks.size() - kMaxNamed, " more"));
      break;
    }
    names.push_back(name_of(task));
  }
  return absl::StrJoin(names, ", ");
}

absl::Status Waited(absl::Duration limit, const std::string& for_whom) {
  return absl::UnavailableError(
      absl::StrCat("waited ", absl::FormatDuration(limit), " for ", for_whom));
}

bool HasNoWorkers(const Membership& membership, wire::JobPhase phase) {
  return phase == wire::TRAINING && membership.CountAlive("worker") == 0;
}

// Returns the tasks of `role` whose absence has lasted `limit`.
std::vector<TaskId> Overdue(const Membership& membership,
                            absl::string_view role, absl::Duration limit,
                            absl::Time now) {
  std::vector<TaskId> overdue;
  for (const TaskId& id : membership.Absent(role)) {
    const Membership::Member& member = membership.members().at(id);
    if (now - member.absent_since >= limit) overdue.push_back(id);
  }
  return overdue;
}

}  // namespace

std::vector<TaskId> MissingTasks(const Membership& membership,
                                 wire::JobPhase phase, bool needs_all_workers) {
  std::vector<TaskId> missing = membership.Absent("ps");
  if (needs_all_workers || HasNoWorkers(membership, phase)) {
    for (TaskId& worker : membership.Absent("worker")) {
      missing.push_back(std::move(worker));
    }
  }
  return missing;
}

std::vector<TaskId> DispensableTasks(const Membership& membership,
                                     absl::Duration limit,
                                     absl::Time training_since,
                                     absl::Time now) {
  std::vector<TaskId> absent;
  for (const char* role : {"worker", "evaluator"}) {
    for (TaskId& task : membership.Absent(role)) {
      const Membership::Member& member = membership.members().at(task);
      const absl::Time since = std::max(member.absent_since, training_since);
      if (!member.lost && now - since < limit) continue;
      absent.push_back(std::move(task));
    }
  }
  return absent;
}

absl::Status CheckAbsences(const Membership& membership, wire::JobPhase phase,
                           bool needs_all_workers, absl::Time phase_since,
                           const AbsenceLimits& limits, const TaskName& name_of,
                           absl::Time now) {
  if (needs_all_workers) {
    const auto overdue = Overdue(membership, "worker", limits.workers, now);
    if (!overdue.empty())
      return Waited(limits.workers, NamesOf(overdue, name_of));
  }
  const auto overdue = Overdue(membership, "ps", limits.ps, now);
  if (!overdue.empty()) return Waited(limits.ps, NamesOf(overdue, name_of));
  if (!HasNoWorkers(membership, phase)) return absl::OkStatus();
  const std::vector<TaskId> workers = membership.Absent("worker");
  absl::Time since = phase_since;
  for (const TaskId& worker : workers) {
    since = std::max(since, membership.members().at(worker).absent_since);
  }
  if (now - since < limits.workers) return absl::OkStatus();
  return Waited(limits.workers,
                absl::StrCat("any of ", NamesOf(workers, name_of)));
}

}  // namespace parasol
