#include "deploy/local/supervisor.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/process.h"
#include "base/status_macros.h"
#include "deploy/local/file_tail.h"
#include "deploy/local/last_error.h"
#include "deploy/remote/guard_protocol.h"

namespace parasol {
namespace {

// Enough for the last words of a task and the stack of a sanitizer.
constexpr int64_t kLogTailBytes = 64 << 10;

// The exit code also of a task that only repeats why the job has failed.
constexpr int kPermanentFailure = static_cast<int>(ExitCode::kPermanentFailure);

// After which those are named that have not ended, and how often it is asked
// whether all are to end at once.
constexpr absl::Duration kNamedAfter = absl::Seconds(5);
constexpr absl::Duration kLook = absl::Milliseconds(100);

}  // namespace

Supervisor::Supervisor(std::vector<TaskPlan> plans, const RestartLimits& limits,
                       std::function<void(const std::string&)> tell,
                       Clock& clock)
    : tell_(std::move(tell)), clock_(clock) {
  for (TaskPlan& plan : plans) {
    tasks_.push_back({.plan = std::move(plan),
                      .policy = RestartPolicy(limits),
                      .process = nullptr,
                      .start_at = absl::InfiniteFuture()});
  }
}

absl::Status Supervisor::Start() {
  for (Task& task : tasks_) RETURN_IF_ERROR(StartTask(task));
  return absl::OkStatus();
}

absl::Status Supervisor::StartTask(Task& task) {
  SubprocessOptions options;
  options.argv = task.plan.argv;
  options.environment = {{"TF_CONFIG", task.plan.tf_config}};
  options.input_socket = task.plan.is_remote;
  options.standard_output = OutputTo::File(task.plan.log_file);
  options.standard_error = OutputTo::File(task.plan.log_file);
  // A Ctrl-C is passed on as one SIGTERM, in the order of Stop().
  options.own_process_group = true;
  task.log_begin = FileEnd(task.plan.log_file);
  ASSIGN_OR_RETURN(task.process, Subprocess::Start(options));
  // A connection that takes nothing ends by itself.
  if (task.plan.is_remote) task.process->WriteInput(task.plan.first_input);
  task.start_at = absl::InfiniteFuture();
  task.policy.Started(clock_.Now());
  return absl::OkStatus();
}

Supervisor::State Supervisor::Poll() {
  Beat();
  for (Task& task : tasks_) {
    if (task.process == nullptr) {
      if (state_ != State::kRunning || clock_.Now() < task.start_at ||
          failed_at_ != absl::InfiniteFuture()) {
        continue;
      }
      const absl::Status started = StartTask(task);
      if (!started.ok()) Fail(task, 1, std::string(started.message()));
      continue;
    }
    const std::optional<ProcessEnd> end = task.process->Poll();
    if (!end.has_value()) continue;
    task.process.reset();
    HandleEnd(task, *end);
  }
  if (IsFailureKnown()) state_ = State::kFailed;
  if (state_ == State::kFinishing) EndStragglers();
  const bool none_runs = absl::c_all_of(
      tasks_, [](const Task& task) { return task.process == nullptr; });
  if (state_ == State::kFinishing && none_runs) state_ = State::kEnded;
  return state_;
}

void Supervisor::EndStragglers() {
  if (clock_.Now() - finishing_since_ < kFinishLimit) return;
  for (Task& task : tasks_) {
    if (task.process == nullptr) continue;
    tell_(absl::StrCat(task.plan.name, " still runs ",
                       absl::FormatDuration(kFinishLimit),
                       " after the job's end: killing it"));
    task.process.reset();
  }
}

void Supervisor::HandleEnd(Task& task, const ProcessEnd& end) {
  if (state_ == State::kFinishing) {
    if (end.code() != 0) {
      tell_(absl::StrCat(task.plan.name, " ended after the job with ",
                         Describe(end), Reason(task)));
    }
    return;
  }
  const RestartPolicy::Decision decision = task.policy.Ended(end, clock_.Now());
  switch (decision.verdict) {
    case RestartPolicy::Verdict::kDone:
      if (task.plan.leads_job) {
        state_ = State::kFinishing;
        finishing_since_ = clock_.Now();
      }
      return;
    case RestartPolicy::Verdict::kRestart:
      task.start_at = clock_.Now() + decision.delay;
      tell_(absl::StrCat(task.plan.name, " ended with ", Describe(end),
                         Reason(task), "; starting it again (",
                         decision.restart, " of ",
                         task.policy.limits().max_restarts, ")"));
      return;
    case RestartPolicy::Verdict::kFailed:
      Fail(task, end.code(),
           absl::StrCat("ended with ", Describe(end), Reason(task)));
      return;
    case RestartPolicy::Verdict::kTooManyRestarts:
      Fail(task, end.code(),
           absl::StrCat("died more than ", task.policy.limits().max_restarts,
                        " times within ",
                        absl::FormatDuration(task.policy.limits().window),
                        ", last with ", Describe(end), Reason(task)));
      return;
  }
}

bool Supervisor::IsFailureKnown() const {
  if (failed_at_ == absl::InfiniteFuture()) return false;
  const bool chief_runs = absl::c_any_of(tasks_, [](const Task& task) {
    return task.plan.leads_job && task.process != nullptr;
  });
  return !chief_runs || clock_.Now() - failed_at_ >= kVerdictLimit;
}

void Supervisor::Fail(const Task& task, int exit_code, const std::string& how) {
  const bool is_first = failed_at_ == absl::InfiniteFuture();
  const bool says_more =
      failure_.exit_code == kPermanentFailure && exit_code != kPermanentFailure;
  if (!is_first && !says_more) return;
  failed_at_ = std::min(failed_at_, clock_.Now());
  failure_ = {.task = task.plan.name,
              .exit_code = exit_code,
              .reason = absl::StrCat(task.plan.name, " ", how,
                                     " (log: ", task.plan.log_file, ")")};
}

std::string Supervisor::Reason(const Task& task) const {
  const std::string reason =
      LastError(FileTail(task.plan.log_file, kLogTailBytes, task.log_begin),
                task.plan.role);
  return reason.empty() ? "" : absl::StrCat(": ", reason);
}

void Supervisor::Stop(absl::Duration limit,
                      const std::function<bool()>& at_once) {
  const absl::Time start = clock_.Now();
  const absl::Time end = start + limit;
  Drain({"worker", "evaluator"}, start + limit / 2, end, at_once);
  Drain({"chief"}, start + limit * 0.75, end, at_once);
  Drain({"ps"}, end, end, at_once);
  // The destructor of a process kills it.
  for (Task& task : tasks_) task.process.reset();
}

void Supervisor::Beat() {
  const absl::Time now = clock_.Now();
  for (Task& task : tasks_) {
    if (task.process == nullptr || !task.plan.is_remote ||
        now < task.next_beat) {
      continue;
    }
    task.next_beat = now + kBeatPeriod;
    // A connection that takes nothing ends by itself.
    task.process->WriteInput(kBeat);
  }
}

void Supervisor::Drain(const std::vector<std::string>& roles,
                       absl::Time deadline, absl::Time killed_at,
                       const std::function<bool()>& at_once) {
  if (at_once()) return;
  std::vector<Task*> left;
  for (Task& task : tasks_) {
    if (task.process == nullptr ||
        !absl::c_linear_search(roles, task.plan.role)) {
      continue;
    }
    left.push_back(&task);
    if (task.plan.is_remote) {
      task.process->WriteInput(kTerminate);
    } else {
      task.process->Terminate();
    }
  }
  absl::Time named_at = clock_.Now() + kNamedAfter;
  while (true) {
    std::erase_if(left, [](const Task* task) {
      return task->process->Poll().has_value();
    });
    const absl::Time now = clock_.Now();
    if (left.empty() || now >= deadline || at_once()) return;
    if (now >= named_at) {
      NameAwaited(left, killed_at - now);
      named_at = absl::InfiniteFuture();
    }
    Beat();
    left[0]->process->Wait(std::min(deadline - now, kLook)).IgnoreError();
  }
}

void Supervisor::NameAwaited(const std::vector<Task*>& tasks,
                             absl::Duration left) {
  const std::string killed =
      absl::StrCat("still runs; it is killed in ",
                   absl::FormatDuration(absl::Ceil(left, absl::Seconds(1))));
  for (const Task* task : tasks) {
    tell_(absl::StrCat(
        "waiting for ", task->plan.name,
        task->plan.is_remote
            ? ""
            : absl::StrCat(" (process ", task->process->pid(), ")"),
        ", which ", killed));
  }
}

}  // namespace parasol
