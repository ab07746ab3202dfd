#include "tests/simulation/control_plane.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/simulation/async_worker.h"
#include "tests/simulation/job_of.h"
#include "tests/simulation/ps_process.h"
#include "tests/simulation/sync_worker.h"

namespace parasol::simulation {
namespace {

constexpr absl::Time kBoot = absl::FromUnixSeconds(1000000000);
// Time after which the supervisor starts a process again that has ended.
constexpr absl::Duration kRestart = absl::Seconds(1);
// Longest time that a cluster takes to end which is told to, beyond a step.
constexpr absl::Duration kWatchInterval = absl::Seconds(5);
// Longest time without progress once the faults are over: a lease and the
// deadlines of calls; more where a clock runs at half the speed, or the network
// always loses calls: several attempts at a checkpoint, one each 5 s, may fail.
// A chief whose job is complete waits for tasks that may come back, for
// finish_timeout.
constexpr absl::Duration kMaxStandstill = absl::Seconds(20);
constexpr absl::Duration kMaxSlowStandstill = absl::Seconds(30);
constexpr absl::Duration kMaxStandstillAtEnd = absl::Seconds(90);
// Longest time from the last fault to the end of the job.
constexpr absl::Duration kMaxRest = absl::Minutes(60);
// Time after the last fault in which everybody has come to one job.
constexpr absl::Duration kSettled = absl::Seconds(30);

using Kind = Fault::Kind;

}  // namespace

ControlPlane::ControlPlane(const Schedule& schedule, const Rules& rules)
    : schedule_(schedule),
      world_(schedule, rules),
      evaluator_(world_),
      stranger_(world_),
      stop_(
          world_, [this](Process& process) { Terminate(process); },
          [this] { StartAgain(); }) {
  world_.OnExit([this](Process& process, const absl::Status& status) {
    OnExit(process, status);
  });
}

ControlPlane::Report ControlPlane::Run(const Schedule& schedule,
                                       const Rules& rules, bool wants_trace) {
  ControlPlane simulation(schedule, rules);
  World& world = simulation.world_;
  if (wants_trace) world.EnableTrace();
  simulation.LaunchAll();
  const auto& violation = world.auditor().violation();
  while (!simulation.has_ended_ && !violation && world.loop().RunNext()) {
  }
  Report report;
  report.violation = violation;
  report.events = world.loop().events();
  report.took = world.loop().now() - kBoot;
  report.trace = world.trace();
  return report;
}

void ControlPlane::StartAgain() {
  LaunchLater({"chief", 0}, kRestart);
  for (int i = 0; i < schedule_.shape.ps; ++i) LaunchLater({"ps", i}, kRestart);
  for (int i = 0; i < schedule_.shape.workers; ++i) {
    LaunchLater({"worker", i}, kRestart);
  }
}

void ControlPlane::LaunchAll() {
  Launch({"chief", 0});
  evaluator_.Start();
  stranger_.Start();
  const auto launch_soon = [this](const TaskId& place, absl::Duration late) {
    LaunchLater(place, late + world_.random().Between(absl::ZeroDuration(),
                                                      absl::Milliseconds(300)));
  };
  const Shape& shape = schedule_.shape;
  for (int i = 0; i < shape.ps; ++i) launch_soon({"ps", i}, {});
  for (int i = 0; i < shape.workers; ++i) {
    launch_soon({"worker", i}, shape.late * i / shape.workers);
  }
  for (const Fault& fault : schedule_.faults) {
    world_.loop().At(kBoot + fault.at, [this, &fault] { Inject(fault); });
  }
  world_.loop().At(kBoot + schedule_.End(), [this] {
    progress_ = ProgressNow();
    progress_at_ = world_.loop().now();
    Watch();
  });
  world_.loop().At(kBoot + schedule_.End() + kSettled, [this] { CheckJobs(); });
}

void ControlPlane::Launch(const TaskId& place) {
  const int number = world_.NextNumber();
  newest_[place] = number;
  std::unique_ptr<Process> process;
  if (place.role == "chief") {
    process = std::make_unique<ChiefProcess>(world_, number, job_);
  } else if (place.role == "ps") {
    process = std::make_unique<PsProcess>(world_, place.index, number);
  } else {
    process = MakeWorker(place.index, number);
  }
  world_.Launch(std::move(process));
}

std::unique_ptr<Process> ControlPlane::MakeWorker(int index, int number) {
  if (schedule_.shape.mode == Shape::Mode::kSynchronous) {
    return std::make_unique<SyncWorker>(world_, index, number);
  }
  return std::make_unique<AsyncWorker>(world_, index, number);
}

void ControlPlane::LaunchLater(const TaskId& place, absl::Duration delay) {
  world_.loop().At(world_.loop().now() + delay, [this, place] {
    if (!LivesSupervised(place) && !stop_.is_going()) Launch(place);
  });
}

bool ControlPlane::LivesSupervised(const TaskId& place) const {
  const Process* const newest = world_.Newest(place);
  const auto it = newest_.find(place);
  return newest != nullptr && newest->number() == it->second;
}

void ControlPlane::Inject(const Fault& fault) {
  if (world_.Disturb(fault)) return;
  if (fault.kind == Kind::kStopAll) return stop_.Begin(fault, world_.Live());
  Process* const process = world_.Newest(fault.target);
  if (process != nullptr) Hit(fault, *process);
}

void ControlPlane::Terminate(Process& process) {
  if (process.place().role == "chief") {
    return static_cast<ChiefProcess&>(process).Terminate();
  }
  if (process.place().role == "ps") {
    return static_cast<PsProcess&>(process).Terminate();
  }
  static_cast<WorkerProcess&>(process).Terminate();
}

void ControlPlane::Hit(const Fault& fault, Process& process) {
  const absl::Time end = world_.loop().now() + fault.length;
  const bool is_chief = fault.target.role == "chief";
  switch (fault.kind) {
    case Kind::kTerminate:
      if (fault.target.role == "ps") {
        return static_cast<PsProcess&>(process).Terminate();
      }
      [[fallthrough]];
    case Kind::kKill:
      if (is_chief) job_ = fault.job;
      if (fault.for_good && fault.target.role == "ps" &&
          static_cast<PsProcess&>(process).IsProtected()) {
        return world_.Kill(process);
      }
      world_.Kill(process);
      return LaunchLater(fault.target, fault.length);
    case Kind::kLoseMachine:
      if (is_chief) job_ = fault.job;
      world_.LoseMachine(process);
      return LaunchLater(fault.target, fault.length);
    case Kind::kReplace:
      if (is_chief) job_ = fault.job;
      world_.loop().At(world_.loop().now() + fault.length / 2,
                       [this, &fault, &process] {
                         if (newest_[fault.target] == process.number()) {
                           Launch(fault.target);
                         }
                       });
      [[fallthrough]];
    case Kind::kStop:
      world_.Stop(process);
      return world_.loop().At(end,
                              [this, &process] { world_.Continue(process); });
    case Kind::kCutFromChief:
      world_.CutFromChief(process, true);
      return world_.loop().At(
          end, [this, &process] { world_.CutFromChief(process, false); });
    case Kind::kCutFromAll:
      world_.CutFromAll(process, true);
      return world_.loop().At(
          end, [this, &process] { world_.CutFromAll(process, false); });
    case Kind::kRefuse:
      if (fault.target.role != "ps") return;
      // It would end, and what nobody else has would with it.
      if (static_cast<PsProcess&>(process).HasLostPrimary()) return;
      world_.Refuse(process, true);
      static_cast<PsProcess&>(process).BreakStream();
      return world_.loop().At(
          end, [this, &process] { world_.Refuse(process, false); });
    case Kind::kSlowClock:
      return world_.SetClockRate(process, fault.amount / 100.0);
    default:
      return;
  }
}

// As Kubernetes and the launcher go by the exit codes of docs/operations.md.
void ControlPlane::OnExit(Process& process, const absl::Status& status) {
  const bool is_stop = stop_.TakesExit(status);
  // A leftover of a place that has been given to another process.
  if (process.number() != newest_[process.place()]) return;
  if (is_stop) return;
  if (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) {
    return LaunchLater(process.place(), kRestart);
  }
  if (process.place().role == "chief") return OnChiefExit(status);
  if (status.ok()) return;
  world_.auditor().Violate(
      "wrong end",
      absl::StrCat(process.name(), " ends with ", status.ToString()));
}

void ControlPlane::OnChiefExit(const absl::Status& status) {
  has_ended_ = true;
  stop_.Cancel();
  if (!status.ok()) {
    return world_.auditor().Violate("job failed", status.ToString());
  }
  const std::vector<int64_t> steps = world_.disk().Steps();
  const auto final = steps.empty()
                         ? absl::NotFoundError("no checkpoint")
                         : world_.disk().Read(steps[0], world_.random());
  if (!final.ok()) return;
  const durable::CheckpointManifest& manifest = (*final)->manifest;
  world_.auditor().Ended(**final, world_.disk().Evaluations(
                                      manifest.run_id(), RunHistory(manifest)));
}

const ChiefProcess* ControlPlane::chief() const {
  return static_cast<const ChiefProcess*>(world_.Newest({"chief", 0}));
}

ControlPlane::Progress ControlPlane::ProgressNow() const {
  const ChiefProcess* const process = chief();
  if (process == nullptr || process->coordinator() == nullptr) return {};
  const wire::JobStatus status = process->coordinator()->Status(process->now());
  return {status.phase(), status.global_step(),
          process->coordinator()
              ->NewsAt(process->now())
              .newest_checkpoint.value_or(-1),
          world_.auditor().completed_steps()};
}

void ControlPlane::Watch() {
  const absl::Time now = world_.loop().now();
  const Progress progress = ProgressNow();
  if (progress != progress_) {
    progress_ = progress;
    progress_at_ = now;
  }
  const auto& [phase, step, checkpoint, completed] = progress_;
  absl::Duration limit = kMaxStandstill;
  if (schedule_.Has(Kind::kSlowClock) || schedule_.shape.loss > 0) {
    limit = kMaxSlowStandstill;
  }
  // A damaged checkpoint is not evaluated: the chief waits as for a worker.
  if (schedule_.Has(Kind::kDamage) && schedule_.shape.max_lag >= 0) {
    limit += Coordinator::Options().worker_timeout;
  }
  if (phase == wire::COMPLETE) limit = kMaxStandstillAtEnd;
  if (now - progress_at_ >= limit) {
    return world_.auditor().Violate(
        "stuck",
        absl::StrCat(
            "no progress for ", absl::FormatDuration(limit), " in phase ",
            wire::JobPhase_Name(static_cast<wire::JobPhase>(phase)), ", step ",
            step, ", checkpoint ", checkpoint, ", ", completed, " steps done"));
  }
  if (now - kBoot - schedule_.End() >= kMaxRest) {
    return world_.auditor().Violate("endless", "the job does not end");
  }
  world_.loop().At(now + kWatchInterval, [this] { Watch(); });
}

void ControlPlane::CheckJobs() {
  const ChiefProcess* const process = chief();
  if (process == nullptr) return;
  const JobChoice& job = process->job();
  for (Process* const live : world_.Live()) {
    if (live->number() != newest_[live->place()]) continue;
    const bool is_ps = live->place().role == "ps";
    const bool is_worker = live->place().role == "worker";
    const ShardValues* const held =
        is_ps ? static_cast<PsProcess*>(live)->held() : nullptr;
    const JobChoice* const works_on =
        is_worker ? static_cast<WorkerProcess*>(live)->job() : nullptr;
    const bool differs =
        (held != nullptr && (held->hyperparameters != job.hyperparameters ||
                             held->layout != LayoutOf(job))) ||
        (works_on != nullptr && !(*works_on == job));
    if (differs) {
      world_.auditor().Violate(
          "two jobs",
          absl::StrCat(live->name(), " has another job than the chief"));
    }
  }
}

}  // namespace parasol::simulation
