#include "worker/group/group_member.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "worker/group/state/state_transfer.h"
#include "worker/group/state/wait_intervals.h"

namespace parasol {

GroupMember::GroupMember(Options options, GroupState& state, StepMaker& steps,
                         CollectiveEndpoint& endpoint, Clock& clock,
                         MetricsRegistry& metrics)
    : options_(std::move(options)),
      state_(state),
      steps_(steps),
      endpoint_(endpoint),
      clock_(clock),
      groups_joined_(metrics.AddCounter(
          "parasol_worker_collective_groups_total",
          "Groups of workers that this one has summed gradients with.",
          {{"end", "joined"}})),
      groups_lost_(metrics.AddCounter(
          "parasol_worker_collective_groups_total",
          "Groups of workers that this one has summed gradients with.",
          {{"end", "lost"}})),
      membership_(options_.task.incarnation(), options_.finish_limit),
      thread_([this] { Run(); }) {}

GroupMember::~GroupMember() {
  Stop();
  const auto has_ended = [this] {
    absl::MutexLock lock(&mu_);
    return clock_.AwaitWithTimeout(mu_, absl::Condition(&has_ended_),
                                   kPollInterval);
  };
  while (!has_ended()) AbortIfStopping();
  thread_.join();
}

void GroupMember::Hear(const wire::ClaimStepsResponse& answer) {
  std::shared_ptr<GroupRun> superseded;
  int64_t joining = 0;
  {
    absl::MutexLock lock(&mu_);
    if (!membership_.Hear(answer)) {
      LOG_EVERY(WARNING, kLogInterval)
          << "the chief says that workers' group "
          << answer.assignment_version()
          << " is the newest, but this worker has heard of "
          << membership_.heard() << ": it waits for a later one";
    }
    const int64_t heard = membership_.heard();
    if (joining_ < heard) joining = joining_;
    if (run_ != nullptr && run_->group().version < heard) superseded = run_;
  }
  if (joining != 0) endpoint_.CancelJoin(joining);
  if (superseded == nullptr) return;
  superseded->Supersede();
  superseded->collective().Abort(GroupRun::SupersededError());
}

int64_t GroupMember::broken() const {
  absl::MutexLock lock(&mu_);
  return membership_.broken();
}

void GroupMember::LookAgain() {
  std::shared_ptr<GroupRun> run;
  {
    absl::MutexLock lock(&mu_);
    run = run_;
  }
  if (run != nullptr) run->LookAgain();
}

TrainingParameters::Awaited GroupMember::Unanswered() const {
  absl::MutexLock lock(&mu_);
  return {.peers = membership_.Awaited(), .last_loading = last_loading_};
}

// Before that a pull could return values that the group does not go on with.
bool GroupMember::AwaitAgreed(absl::Duration limit) {
  {
    absl::MutexLock lock(&mu_);
    const auto has_agreed = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return membership_.has_agreed() || has_ended_;
    };
    if (clock_.AwaitWithTimeout(mu_, absl::Condition(&has_agreed), limit)) {
      return true;
    }
  }
  return !state_.steps().ended().ok();
}

void GroupMember::Stop() {
  std::shared_ptr<GroupRun> run;
  {
    absl::MutexLock lock(&mu_);
    membership_.Stop(clock_.Now());
    run = run_;
  }
  if (run != nullptr) run->Stop();
  AbortIfStopping();
}

void GroupMember::AbortIfStopping() {
  {
    // No step is made behind the last checkpoint.
    const bool stays = state_.steps().stays();
    absl::MutexLock lock(&mu_);
    if (!membership_.GivesUp(clock_.Now(), stays)) return;
  }
  steps_.Stop();
  state_.steps().EndThoseThatStay();
  Abort(absl::CancelledError("stopped"));
}

void GroupMember::Abort(const absl::Status& why) {
  std::shared_ptr<GroupRun> run;
  int64_t joining;
  {
    absl::MutexLock lock(&mu_);
    run = run_;
    joining = joining_;
  }
  if (joining != 0) endpoint_.CancelJoin(joining);
  if (run != nullptr) run->collective().Abort(why);
}

void GroupMember::Run() {
  StepGroup group;
  while (AwaitGroup(group)) NoteEnd(group, RunGroup(group));
  steps_.MakeLeftStep();
  state_.steps().End(absl::CancelledError("the worker is stopping"));
  steps_.Stop();
  absl::MutexLock lock(&mu_);
  has_ended_ = true;
}

bool GroupMember::AwaitGroup(StepGroup& group) {
  absl::MutexLock lock(&mu_);
  const auto is_there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return membership_.is_stopping() ||
           membership_.group().version > group.version;
  };
  while (
      !clock_.AwaitWithTimeout(mu_, absl::Condition(&is_there), kLogInterval)) {
    LOG(INFO) << "waiting for the chief to assign replicas";
  }
  if (membership_.is_stopping()) return false;
  group = membership_.group();
  return true;
}

absl::StatusOr<CollectiveGroup> GroupMember::WithPlanner(
    CollectiveGroup group) {
  if (options_.planner == nullptr) return group;
  const absl::Status right = CheckPlanner(*options_.planner, group.layout());
  if (!right.ok()) {
    state_.steps().End(right);
    return right;
  }
  group.planner = options_.planner;
  return group;
}

absl::StatusOr<std::shared_ptr<GroupRun>> GroupMember::Join(
    const StepGroup& group) {
  ASSIGN_OR_RETURN(const CollectiveGroup members,
                   WithPlanner(group.collective));
  {
    absl::MutexLock lock(&mu_);
    if (membership_.IsOver(group.version)) return GroupRun::SupersededError();
    joining_ = group.version;
  }
  absl::StatusOr<std::unique_ptr<Collective>> joined =
      endpoint_.Join(members, options_.join_limit);
  absl::MutexLock lock(&mu_);
  joining_ = 0;
  if (membership_.IsOver(group.version)) return GroupRun::SupersededError();
  RETURN_IF_ERROR(joined.status());
  run_ = std::make_shared<GroupRun>(group, *std::move(joined), clock_);
  steps_.BeginGroup(*run_);
  return run_;
}

absl::Status GroupMember::RunGroup(const StepGroup& group) {
  ASSIGN_OR_RETURN(const std::shared_ptr<GroupRun> run, Join(group));
  groups_joined_.Add();
  const absl::Status why = MakeSteps(*run);
  steps_.EndGroup();
  run->Release(why);
  // Others stop waiting for this worker.
  absl::MutexLock lock(&mu_);
  membership_.SetMakesSteps(false);
  run_ = nullptr;
  return why;
}

absl::Status GroupMember::MakeSteps(GroupRun& run) {
  const StepGroup& group = run.group();
  const absl::Status agreed = AgreeOnState(
      run.collective(), state_, [&] { return NoteLoading(group); }, clock_);
  if (!agreed.ok()) {
    // The group goes on: it is this worker that can't take the variables.
    if (!absl::IsCancelled(agreed) && run.collective().status().ok()) {
      state_.steps().End(agreed);
    }
    return agreed;
  }
  RETURN_IF_ERROR(state_.steps().ended());
  RETURN_IF_ERROR(steps_.Meet(run));
  {
    absl::MutexLock lock(&mu_);
    membership_.SetMakesSteps(true);
  }
  LOG(INFO) << "summing gradients of " << absl::StrJoin(group.names, ", ")
            << " from step " << state_.version().step << " on; this worker "
            << "computes replica " << absl::StrJoin(group.replicas, ", ");
  while (true) {
    RETURN_IF_ERROR(steps_.MakeStep(run));
    absl::MutexLock lock(&mu_);
    membership_.NoteStep();
  }
}

bool GroupMember::NoteLoading(const StepGroup& group) {
  absl::MutexLock lock(&mu_);
  last_loading_ = clock_.Now();
  return !membership_.IsOver(group.version);
}

// The chief may know of the loss by itself, and name another group. If it does
// not, all members may be alive: they connect anew.
void GroupMember::NoteEnd(const StepGroup& group, const absl::Status& why) {
  const int64_t step = state_.version().step;
  absl::MutexLock lock(&mu_);
  if (membership_.NoteEnd(why, step)) state_.steps().End(why);
  if (membership_.IsOver(group.version)) return;
  // Cancelled: another member has heard of the next group before this one.
  if (!absl::IsCancelled(why)) {
    const std::optional<int> lost = LostRank(why);
    LOG(WARNING) << "the workers' group has ended: "
                 << (lost ? absl::StrCat(group.names[*lost], ", ") : "")
                 << why.message()
                 << "; the step is made again with those that are there";
    groups_lost_.Add();
  }
  const auto is_over = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return membership_.IsOver(group.version);
  };
  clock_.AwaitWithTimeout(mu_, absl::Condition(&is_over),
                          options_.report_delay);
  if (!is_over()) membership_.Report(group.version);
}

}  // namespace parasol
