#include "tests/simulation/group/group_auditor.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace parasol::simulation {

GroupAuditor::GroupAuditor(const Schedule& schedule, job::Job job,
                           Auditor& auditor)
    : shape_(schedule.shape),
      may_go_on_(!shape_.chief_beside ||
                 schedule.Has(Fault::Kind::kReplace, "worker")),
      job_(std::move(job)),
      auditor_(auditor),
      has_lag_(job_.evaluation().has_max_lag()),
      may_forget_(!schedule.faults.empty()) {
  references_.push_back(std::make_unique<GroupReference>(job_, shape_));
  auditor_.OnCommitted(
      [this](const Checkpoint& checkpoint) { Committed(checkpoint); });
  auditor_.OnEvaluated(
      [this](const Evaluation& evaluation) { Evaluated(evaluation); });
  auditor_.OnCheckpointFails([this] { CheckpointFails(); });
  AllowByLag();
}

void GroupAuditor::Named(const wire::ClaimStepsResponse& answer) {
  if (answer.member_size() == 0) return;
  Group group;
  std::vector<int> replicas;
  for (const wire::GroupMember& member : answer.member()) {
    const uint64_t incarnation = member.task().incarnation();
    group.members.insert(incarnation);
    if (member.task().index() == 0) group.worker0 = incarnation;
    replicas.insert(replicas.end(), member.replica().begin(),
                    member.replica().end());
  }
  if (group.worker0 == 0) {
    auditor_.Violate("group without worker/0",
                     absl::StrCat("group ", answer.assignment_version()));
  }
  std::sort(replicas.begin(), replicas.end());
  for (int i = 0; i < shape_.replicas; ++i) {
    if (static_cast<size_t>(i) < replicas.size() && replicas[i] == i) continue;
    auditor_.Violate(
        "replica without a worker",
        absl::StrCat("replica ", i, " of group ", answer.assignment_version()));
  }
  const auto [it, is_new] =
      groups_.try_emplace(answer.assignment_version(), group);
  if (!is_new && it->second.members != group.members) {
    auditor_.Violate("two groups of one epoch",
                     absl::StrCat("group ", answer.assignment_version()));
  }
}

bool GroupAuditor::IsRight(int64_t step, const GroupContents& contents) {
  return std::any_of(references_.begin(), references_.end(),
                     [&](const auto& reference) {
                       return step >= reference->first_step() &&
                              contents == reference->After(step);
                     });
}

bool GroupAuditor::GoesOn(const Version& version,
                          const GroupContents& contents) {
  if (!may_go_on_ || version.epoch != 0) return false;
  for (size_t i = 0; i < references_.size(); ++i) {
    for (int64_t step = references_[i]->first_step(); step < version.step;
         ++step) {
      if (references_[i]->After(step).elements != contents.elements) continue;
      references_.push_back(std::make_unique<GroupReference>(
          job_, shape_, version.step, contents));
      return true;
    }
  }
  return false;
}

void GroupAuditor::StateChanges(const std::string& worker,
                                const Version& before, const Version& after,
                                const GroupContents& contents) {
  if (after.step < before.step) {
    return auditor_.Violate(
        "rolled back", absl::StrCat(worker, " goes from step ", before.step,
                                    " to ", after.step));
  }
  if (after.step > shape_.steps) {
    return auditor_.Violate(
        "beyond the end",
        absl::StrCat(worker, " makes step ", after.step, " of ", shape_.steps));
  }
  if (!IsRight(after.step, contents) && !GoesOn(after, contents)) {
    return auditor_.Violate("wrong state",
                            absl::StrCat(worker,
                                         " has others than the variables "
                                         "after step ",
                                         after.step));
  }
  auditor_.StepReached(after.step);
  if (after.epoch == 0) return;
  CheckLag(worker, after.step);
  CheckGroups(worker, after);
  CheckAlike(worker, after, contents);
}

// All members of a group take part in each step. Worker 0 is in every group: so
// one ends before the next begins, and makes no step that is beyond the next
// one's first.
void GroupAuditor::CheckGroups(const std::string& worker, const Version& made) {
  const auto found = groups_.find(made.epoch);
  if (found == groups_.end()) {
    return auditor_.Violate(
        "unknown group", absl::StrCat(worker, " has step ", made.step,
                                      " of a group that no chief has named"));
  }
  Group& group = found->second;
  group.first = group.has_made ? std::min(group.first, made.step) : made.step;
  group.last = std::max(group.last, made.step);
  group.has_made = true;
  for (const auto& [epoch, other] : groups_) {
    if (epoch == made.epoch || !other.has_made) continue;
    if (other.worker0 != group.worker0) continue;
    const bool is_earlier = epoch < made.epoch;
    const int64_t last = is_earlier ? other.last : group.last;
    const int64_t first = is_earlier ? group.first : other.first;
    if (last <= first) continue;
    auditor_.Violate(
        "two groups go on",
        absl::StrCat(worker, ", step ", made.step, ": group ",
                     std::min(epoch, made.epoch), " has made step ", last,
                     ", group ", std::max(epoch, made.epoch), " step ", first));
  }
}

void GroupAuditor::CheckAlike(const std::string& worker, const Version& version,
                              const GroupContents& contents) {
  const auto [it, is_new] = seen_.try_emplace(version, contents);
  if (is_new || it->second == contents) return;
  auditor_.Violate("members differ",
                   absl::StrCat(worker, ", step ", version.step, " of group ",
                                version.epoch));
}

// By what lies on the disk, of which a chief may know less.
void GroupAuditor::AllowByLag() {
  if (!has_lag_) return;
  const int64_t every = job_.evaluation().every_steps();
  const int64_t newest = due_.empty() ? 0 : *due_.rbegin();
  auto open = std::count_if(due_.begin(), due_.end(), [this](int64_t s) {
    return !evaluated_.contains(s);
  });
  if (may_forget_) open = std::min<int64_t>(open, 1);
  allowed_ = std::max(
      allowed_,
      (newest / every + job_.evaluation().max_lag() + 1 - open) * every);
}

void GroupAuditor::CheckLag(const std::string& worker, int64_t step) {
  reached_ = std::max(reached_, step);
  if (is_failing_) allowed_ = std::max(allowed_, step + 1);
  if (!has_lag_ || step <= allowed_) return;
  auditor_.Violate("beyond max_lag",
                   absl::StrCat(worker, " makes step ", step, ", of ", allowed_,
                                " that evaluations allow"));
}

// Steps that begin until the next checkpoint may end later.
void GroupAuditor::CheckpointFails() {
  is_failing_ = has_failed_ = true;
  allowed_ = std::max(allowed_, reached_ + 1);
}

void GroupAuditor::Evaluated(const Evaluation& evaluation) {
  evaluated_.insert(evaluation.global_step);
  AllowByLag();
}

// A job that waits at each evaluation leaves none out.
void GroupAuditor::Ended() {
  if (!has_lag_ || has_failed_ || job_.evaluation().max_lag() > 0) return;
  const int64_t every = job_.evaluation().every_steps();
  for (int64_t step = every; step < shape_.steps; step += every) {
    if (evaluated_.contains(step)) continue;
    auditor_.Violate("evaluation left out", absl::StrCat("of step ", step));
  }
}

void GroupAuditor::Committed(const Checkpoint& checkpoint) {
  const int64_t step = checkpoint.manifest.global_step();
  // What was granted while none could be written: the step that workers wait
  // to begin, and the one behind it.
  if (is_failing_) allowed_ = std::max(allowed_, reached_ + 2);
  is_failing_ = false;
  if (checkpoint.manifest.evaluation_due()) due_.insert(step);
  AllowByLag();
  for (const auto& file : checkpoint.files) {
    if (IsRight(step, {file->elements, file->updates})) continue;
    auditor_.Violate("wrong checkpoint",
                     absl::StrCat("checkpoint ", step,
                                  " has others than the variables after it"));
  }
}

void GroupAuditor::Waits(const std::string& worker,
                         const std::vector<std::string>& for_whom) {
  if (!for_whom.empty()) return;
  auditor_.Violate("nameless wait",
                   absl::StrCat(worker, " waits, and can't say for whom"));
}

}  // namespace parasol::simulation
