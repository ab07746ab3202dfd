#include "deploy/local/local_run.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/process.h"
#include "base/status_macros.h"
#include "base/uri/uri_path.h"
#include "cluster/client/chief_client.h"
#include "cluster/progress/step_rate.h"
#include "cluster/progress/task_notes.h"
#include "cluster/trust/job_token.h"
#include "cluster/trust/token_store.h"
#include "cluster/trust/trust.h"
#include "deploy/local/complete_run.h"
#include "deploy/local/evaluation_line.h"
#include "deploy/local/file_tail.h"
#include "deploy/local/host_tasks.h"
#include "deploy/local/loopback_ports.h"
#include "deploy/local/progress.h"
#include "deploy/local/progress_display.h"
#include "deploy/local/restart_policy.h"
#include "deploy/local/status_poller.h"
#include "deploy/local/supervisor.h"

namespace parasol {
namespace {

// Time between two looks at a file in a store.
constexpr absl::Duration kLookInterval = absl::Seconds(5);
// How soon a process that has died is noticed.
constexpr absl::Duration kTick = absl::Milliseconds(50);
constexpr absl::Duration kStatusPeriod = absl::Milliseconds(300);
constexpr absl::Duration kStatusDeadline = absl::Milliseconds(500);
// For the tasks to leave once the chief has; the evaluator may still have the
// last checkpoint to evaluate.
constexpr absl::Duration kFinishLimit = absl::Minutes(2);
// Longer than a ps waits for its last checkpoint (--drain_timeout, then
// --drain_silence), and the chief for its own.
constexpr absl::Duration kDrainLimit = absl::Seconds(60);
// Before a task on another host is started again. Its host has found the end of
// the connection by then, and its ports are free.
constexpr absl::Duration kFirstDelayOnHosts = absl::Seconds(1);
constexpr int64_t kEvaluationsTailBytes = 64 << 10;
constexpr absl::Duration kShortTraining = absl::Seconds(10);

RestartLimits LimitsFor(const LocalJob& job) {
  RestartLimits limits;
  if (!job.hosts.empty()) limits.first_delay = kFirstDelayOnHosts;
  return limits;
}

std::shared_ptr<const Trust> OwnTrust(const StoredToken& token, Clock& clock) {
  const absl::StatusOr<JobToken> parsed = JobToken::Parse(token.text());
  CHECK(parsed.ok()) << parsed.status();
  return Trust::OfToken(*parsed, PeerRole::kOperator, /*index=*/0, clock);
}

// One job from its start to its end.
class LocalRun {
 public:
  LocalRun(const LocalJob& job, LocalPlan plan, StoredToken token,
           const TerminationSignal& signals, Clock& clock)
      : job_(job),
        token_(std::move(token)),
        signals_(signals),
        clock_(clock),
        start_(clock.Now()),
        display_(ProgressDisplay::ForStderr()),
        supervisor_(
            plan.tasks, LimitsFor(job),
            [this](const std::string& line) { display_.Tell(line); }, clock),
        chief_address_(plan.chief_address),
        poller_(ChiefClient::Create(plan.chief_address, kStatusDeadline,
                                    Callee::Chief(OwnTrust(token_, clock))),
                kStatusPeriod, clock) {
    for (const TaskPlan& task : plan.tasks) {
      if (task.role == "chief") {
        page_ = absl::StrCat("http://", task.metrics_address, "/");
      }
      metrics_.emplace_back(
          task.role == "chief" ? task.role : task.name,
          absl::StrCat("http://", task.metrics_address, "/metrics"));
    }
  }

  RunResult Run();

 private:
  // Until the job has ended in one way or another.
  void Supervise(RunResult& result);
  void Observe();
  void Interrupt(RunResult& result);
  void Fail(RunResult& result);
  // Stops all tasks; at once if there are, or come, more than `before` signals.
  void StopAll(int before);
  void AddOutcome(RunResult& result) const;

  const LocalJob& job_;
  const StoredToken token_;
  const TerminationSignal& signals_;
  Clock& clock_;
  const absl::Time start_;
  ProgressDisplay display_;
  Supervisor supervisor_;
  const std::string chief_address_;
  StatusPoller poller_;
  std::vector<std::pair<std::string, std::string>> metrics_;
  std::string page_;  // the chief's; empty if no task is the chief
  // StartLine() of the chief that answered last.
  std::string start_line_;
  TaskNotes notes_;
  StepRate step_rate_;
  MeanStepRate mean_step_rate_;
  std::optional<EvaluationLine> evaluation_;  // as it was read last
  absl::Time next_look_ = absl::InfinitePast();
};

std::optional<EvaluationLine> ReadEvaluation(const LocalJob& job) {
  return LastEvaluationLine(
      FileTail(JoinedPath(job.checkpoint_dir, "evaluations.jsonl"),
               kEvaluationsTailBytes));
}

RunResult LocalRun::Run() {
  RunResult result;
  const absl::Status started = supervisor_.Start();
  if (!started.ok()) {
    result.status = RunResult::Status::kFailed;
    result.error = std::string(started.message());
    result.exit_code = static_cast<int>(ExitCodeFor(started));
    return result;
  }
  display_.Tell(
      absl::StrCat("status of all tasks: parasol status ", chief_address_));
  if (!page_.empty()) display_.Tell(absl::StrCat("page of the job: ", page_));
  Supervise(result);
  display_.End();
  AddOutcome(result);
  return result;
}

void LocalRun::Supervise(RunResult& result) {
  absl::Time finish_by = absl::InfiniteFuture();
  while (true) {
    if (signals_.signal() != 0) return Interrupt(result);
    const Supervisor::State state = supervisor_.Poll();
    if (state == Supervisor::State::kFailed) return Fail(result);
    if (state == Supervisor::State::kEnded) return;
    if (state == Supervisor::State::kFinishing) {
      finish_by = std::min(finish_by, clock_.Now() + kFinishLimit);
      if (clock_.Now() >= finish_by) {
        display_.Tell("some tasks did not leave after the job; stopping them");
        StopAll(signals_.count());
        return;
      }
    }
    Observe();
    clock_.Pause(kTick);
  }
}

void LocalRun::Observe() {
  const absl::Time now = clock_.Now();
  const std::optional<wire::JobStatus> status = poller_.latest();
  std::optional<absl::Duration> left;
  if (status.has_value()) mean_step_rate_.Observe(*status, now);
  if (status.has_value() && status->phase() == wire::TRAINING) {
    step_rate_.Observe(status->global_step(), now);
    left = step_rate_.TimeTo(status->end_step());
  }
  if (status.has_value()) {
    std::string start = StartLine(*status);
    if (start != start_line_ && !start.empty()) display_.Tell(start);
    start_line_ = std::move(start);
    for (const TaskNotes::Note& note : notes_.Notes(*status)) {
      display_.Tell(note.line);
    }
  }
  // In a store each look is paid for.
  if (!IsUri(job_.checkpoint_dir) || now >= next_look_) {
    evaluation_ = ReadEvaluation(job_);
    next_look_ = now + kLookInterval;
  }
  display_.ShowProgress(
      ProgressLine(status.has_value() ? &*status : nullptr, evaluation_, left),
      now);
}

void LocalRun::Interrupt(RunResult& result) {
  display_.Tell("stopping (once more to stop at once)");
  // The second one may have come already.
  StopAll(/*before=*/1);
  result.status = RunResult::Status::kInterrupted;
  result.exit_code = 128 + signals_.signal();
}

void LocalRun::Fail(RunResult& result) {
  const Supervisor::Failure& failure = supervisor_.failure();
  result.status = RunResult::Status::kFailed;
  result.error = failure.reason;
  result.exit_code = failure.exit_code;
  display_.Tell(absl::StrCat(failure.task, " failed; stopping the others"));
  StopAll(signals_.count());
}

void LocalRun::StopAll(int before) {
  supervisor_.Stop(kDrainLimit,
                   [this, before] { return signals_.count() > before; });
}

void LocalRun::AddOutcome(RunResult& result) const {
  result.elapsed = clock_.Now() - start_;
  result.metrics = metrics_;
  result.evaluation = ReadEvaluation(job_);
  result.examples_per_second =
      mean_step_rate_.steps_per_second() * job_.batch_size;
  const absl::StatusOr<BestCheckpoint> best = ReadBest(job_.checkpoint_dir);
  if (best.ok()) result.best = *best;
  // A training that was seen for a moment alone has written its rate down.
  if (mean_step_rate_.observed() < kShortTraining) {
    result.examples_per_second =
        LastTrainingRate(
            FileTail(JoinedPath(job_.checkpoint_dir, "training.jsonl"),
                     kEvaluationsTailBytes))
            .value_or(result.examples_per_second);
  }
  AddCheckpoint(job_.checkpoint_dir, result);
}

absl::StatusOr<LocalPlan> PlanJob(const LocalJob& job) {
  if (!job.hosts.empty()) {
    ASSIGN_OR_RETURN(const std::vector<std::string> addresses,
                     AddressesOnHosts(job));
    return PlanTasks(job, addresses);
  }
  ASSIGN_OR_RETURN(const std::vector<int> ports,
                   FreeLoopbackPorts(NumAddresses(job)));
  std::vector<std::string> addresses;
  for (const int port : ports) {
    addresses.push_back(absl::StrCat("127.0.0.1:", port));
  }
  return PlanTasks(job, addresses);
}

// Gives the tasks the token of the run.
void GiveToken(const LocalJob& job, const StoredToken& token, LocalPlan& plan) {
  if (!job.hosts.empty()) return StartOnHosts(job, token.text(), plan.tasks);
  for (TaskPlan& task : plan.tasks) {
    task.argv.push_back(absl::StrCat("--token_file=", token.path()));
  }
}

RunResult Failed(const absl::Status& status) {
  RunResult result;
  result.status = RunResult::Status::kFailed;
  result.error = std::string(status.message());
  result.exit_code = static_cast<int>(ExitCodeFor(status));
  return result;
}

}  // namespace

RunResult RunJob(const LocalJob& job, TerminationSignal& signals,
                 Clock& clock) {
  absl::StatusOr<LocalPlan> plan = PlanJob(job);
  if (!plan.ok()) return Failed(plan.status());
  absl::StatusOr<StoredToken> token =
      StoredToken::Draw(job.token_folders, plan->chief_address);
  if (!token.ok()) return Failed(token.status());
  GiveToken(job, *token, *plan);
  signals.ExpectSecond();
  return LocalRun(job, *std::move(plan), *std::move(token), signals, clock)
      .Run();
}

}  // namespace parasol
