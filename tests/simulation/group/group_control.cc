#include "tests/simulation/group/group_control.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/simulation/job_of.h"

namespace parasol::simulation {
namespace {

constexpr absl::Time kBoot = absl::FromUnixSeconds(1000000000);
// Time after which the supervisor starts a process again that has ended.
constexpr absl::Duration kRestart = absl::Seconds(1);
constexpr absl::Duration kWatchInterval = absl::Seconds(5);
// How often worker 0 looks whether the chief beside it has ended, and how long
// it waits for that after its own end.
constexpr absl::Duration kChiefWatch = absl::Milliseconds(200);
constexpr absl::Duration kChiefExitLimit = absl::Minutes(2);
// Longest time without progress once the faults are over: a lease or the wait
// of a new chief for all workers, a join, and a copy.
constexpr absl::Duration kMaxStandstill = absl::Seconds(45);
constexpr absl::Duration kMaxSlowStandstill = absl::Seconds(90);
// Worker 0 that was told to end waits for a checkpoint, in vain if it lacks
// steps, for 40 s.
constexpr absl::Duration kMaxLeavingStandstill = absl::Seconds(75);
constexpr absl::Duration kMaxRest = absl::Minutes(60);

const TaskId kChief = {"chief", 0};
const TaskId kWorker0 = {"worker", 0};
const TaskId kKeeper = {"ps", 0};

using Kind = Fault::Kind;

}  // namespace

GroupControl::GroupControl(const Schedule& schedule)
    : schedule_(schedule),
      world_(schedule, rules_),
      auditor_(schedule, OptionsOf(schedule.shape, JobChoice()).job,
               world_.auditor()),
      points_([this](int64_t point) { OnPoint(point); }),
      cluster_{
          .turns = turns_,
          .points = points_,
          .auditor = auditor_,
          .lookup = [this](const std::string& address) -> SimulatedEndpoint* {
            for (int i = 0; i < schedule_.shape.workers; ++i) {
              if (address != GroupWorker::AddressOf(i)) continue;
              Process* const process = world_.Newest({"worker", i});
              return process == nullptr
                         ? nullptr
                         : &static_cast<GroupWorker*>(process)->endpoint();
            }
            return nullptr;
          },
          .join_keeper = [this](GroupWorker& w) { LaunchKeeper(w); },
          .has_left =
              [this](GroupWorker& worker, const absl::Status& result) {
                OnLeft(worker, result);
              }},
      evaluator_(world_),
      stop_(
          world_, [this](Process& process) { Terminate(process); },
          [this] { StartAgain(); }) {
  world_.OnExit([this](Process& process, const absl::Status& status) {
    OnExit(process, status);
  });
}

GroupControl::Report GroupControl::Run(const Schedule& schedule,
                                       bool wants_trace) {
  GroupControl simulation(schedule);
  World& world = simulation.world_;
  if (wants_trace) world.EnableTrace();
  simulation.LaunchAll();
  const auto& violation = world.auditor().violation();
  while (!simulation.has_ended_ && !violation && world.loop().RunNext()) {
    simulation.turns_.RunReady();
  }
  Report report;
  report.violation = violation;
  report.events = world.loop().events();
  report.took = world.loop().now() - kBoot;
  report.trace = world.trace();
  report.points = simulation.points_.reached();
  return report;
}

std::vector<Process*> GroupControl::Workers() const {
  std::vector<Process*> workers;
  for (int i = 0; i < schedule_.shape.workers; ++i) {
    Process* const worker = world_.Newest({"worker", i});
    if (worker != nullptr) workers.push_back(worker);
  }
  return workers;
}

void GroupControl::StartAgain() {
  for (int i = 0; i < schedule_.shape.workers; ++i) {
    LaunchLater({"worker", i}, kRestart);
  }
}

void GroupControl::LaunchAll() {
  evaluator_.Start();
  if (!IsBeside()) Launch(kChief);
  for (int i = 0; i < schedule_.shape.workers; ++i) {
    LaunchLater(
        {"worker", i},
        world_.random().Between(absl::ZeroDuration(), absl::Milliseconds(300)));
  }
  for (const Fault& fault : schedule_.faults) {
    if (fault.at_point > 0) continue;
    world_.loop().At(kBoot + fault.at, [this, &fault] { Inject(fault); });
  }
  world_.loop().At(kBoot + schedule_.End(), [this] {
    progress_ = ProgressNow();
    progress_at_ = world_.loop().now();
    Watch();
  });
}

void GroupControl::Launch(const TaskId& place) {
  const int number = launched_++;
  newest_[place] = number;
  if (place == kChief) {
    auto chief = std::make_unique<ChiefProcess>(world_, number, JobChoice());
    if (IsBeside()) hosts_[newest_[kWorker0]].chief = chief.get();
    return world_.Launch(std::move(chief));
  }
  auto worker =
      std::make_unique<GroupWorker>(world_, place.index, number, cluster_);
  if (place == kWorker0) hosts_[number].worker = worker.get();
  world_.Launch(std::move(worker));
  if (place == kWorker0 && IsBeside()) Launch(kChief);
}

void GroupControl::LaunchKeeper(GroupWorker& worker) {
  auto keeper = std::make_unique<GroupKeeper>(world_, launched_++, worker);
  hosts_[worker.number()].keeper = keeper.get();
  newest_[kKeeper] = keeper->number();
  world_.Launch(std::move(keeper));
}

void GroupControl::LaunchLater(const TaskId& place, absl::Duration delay) {
  world_.loop().At(world_.loop().now() + delay, [this, place] {
    if (!LivesSupervised(place) && !stop_.is_going()) Launch(place);
  });
}

bool GroupControl::LivesSupervised(const TaskId& place) const {
  const Process* const newest = world_.Newest(place);
  const auto it = newest_.find(place);
  return newest != nullptr && newest->number() == it->second;
}

// After what is being done.
void GroupControl::OnPoint(int64_t point) {
  for (const Fault& fault : schedule_.faults) {
    if (fault.at_point != point) continue;
    world_.loop().At(world_.loop().now(), [this, &fault] { Inject(fault); });
  }
}

void GroupControl::Inject(const Fault& fault) {
  if (world_.Disturb(fault)) return;
  if (fault.kind == Kind::kPart) return Part(fault);
  if (fault.kind == Kind::kFlip) return Flip(fault);
  // The chief is told with the worker beside it.
  if (fault.kind == Kind::kStopAll) return stop_.Begin(fault, Workers());
  Process* const process = world_.Newest(fault.target);
  if (process != nullptr) Hit(fault, *process);
}

void GroupControl::Part(const Fault& fault) {
  std::set<TaskId> far_side;
  for (int i = 0; i < schedule_.shape.workers; ++i) {
    if ((fault.amount >> i & 1) != 0) far_side.insert({"worker", i});
  }
  if (far_side.contains(kWorker0)) far_side.insert(kKeeper);
  const bool takes_chief =
      IsBeside() ? far_side.contains(kWorker0) : (fault.amount >> 30 & 1) != 0;
  if (takes_chief) far_side.insert(kChief);
  world_.Part(std::move(far_side));
  world_.loop().At(world_.loop().now() + fault.length,
                   [this] { world_.Part({}); });
}

void GroupControl::Flip(const Fault& fault) {
  points_.FlipEach(fault.amount);
  world_.loop().At(world_.loop().now() + fault.length,
                   [this] { points_.FlipEach(0); });
}

void GroupControl::WithParts(Process& process,
                             const std::function<void(Process&)>& act) {
  act(process);
  const auto host = hosts_.find(process.number());
  if (host != hosts_.end() && host->second.keeper != nullptr) {
    act(*host->second.keeper);
  }
}

void GroupControl::Hit(const Fault& fault, Process& process) {
  const absl::Time end = world_.loop().now() + fault.length;
  const auto host = hosts_.find(process.number());
  switch (fault.kind) {
    case Kind::kTerminate:
      return Terminate(process);
    case Kind::kKill:
      world_.Kill(process);
      EndParts(process);
      if (fault.target == kChief) {
        return OnChiefExit(process, absl::UnavailableError("was killed"));
      }
      return LaunchLater(fault.target, fault.length);
    case Kind::kReplace:
      world_.loop().At(world_.loop().now() + fault.length / 2,
                       [this, &fault, &process] {
                         if (newest_[fault.target] == process.number()) {
                           Launch(fault.target);
                         }
                       });
      // The whole machine stands still.
      if (host != hosts_.end() && host->second.chief != nullptr) {
        Process* const beside = host->second.chief;
        world_.Stop(*beside);
        world_.loop().At(end, [this, beside] { world_.Continue(*beside); });
      }
      [[fallthrough]];
    case Kind::kStop:
      WithParts(process, [this](Process& part) { world_.Stop(part); });
      return world_.loop().At(end, [this, &process] {
        WithParts(process, [this](Process& part) { world_.Continue(part); });
      });
    case Kind::kCutFromChief:
      WithParts(process,
                [this](Process& part) { world_.CutFromChief(part, true); });
      return world_.loop().At(end, [this, &process] {
        WithParts(process,
                  [this](Process& part) { world_.CutFromChief(part, false); });
      });
    case Kind::kCutFromAll:
      world_.CutFromAll(process, true);
      return world_.loop().At(
          end, [this, &process] { world_.CutFromAll(process, false); });
    case Kind::kSlowClock:
      return WithParts(process, [this, &fault](Process& part) {
        world_.SetClockRate(part, static_cast<double>(fault.amount) / 100);
      });
    default:
      return;
  }
}

// SIGTERM reaches worker 0 and the chief beside it alike.
void GroupControl::Terminate(Process& process) {
  // A process that is stopped takes the signal when it goes on.
  world_.After(process, absl::ZeroDuration(), [this, &process] {
    if (process.place() == kChief) {
      return static_cast<ChiefProcess&>(process).Terminate();
    }
    static_cast<GroupWorker&>(process).Terminate();
    const auto host = hosts_.find(process.number());
    if (host == hosts_.end() || host->second.chief == nullptr) return;
    Terminate(*host->second.chief);
  });
}

// As LeaveState() and WaitForBoth() do.
void GroupControl::OnLeft(GroupWorker& worker, const absl::Status& result) {
  const auto found = hosts_.find(worker.number());
  if (found == hosts_.end()) return world_.Exit(worker, result);
  const Host& host = found->second;
  const bool has_keeper = host.keeper != nullptr && host.keeper->alive();
  if (host.chief == nullptr) {
    const auto leave = [this, &worker, result, has_keeper,
                        keeper = host.keeper] {
      if (!has_keeper) return world_.Exit(worker, result);
      keeper->Leave([this, &worker, result] { world_.Exit(worker, result); });
    };
    if (!has_keeper || !worker.was_told_to_end()) return leave();
    return host.keeper->AwaitCheckpoint(leave);
  }
  if (result.ok() && has_keeper) host.keeper->Leave([] {});
  const bool asks_for_restart =
      absl::IsUnavailable(result) || absl::IsDeadlineExceeded(result);
  if (asks_for_restart) Terminate(*host.chief);
  AwaitChief(worker, result, world_.loop().now() + kChiefExitLimit);
}

void GroupControl::AwaitChief(GroupWorker& worker, const absl::Status& result,
                              absl::Time limit) {
  const Host& host = hosts_.at(worker.number());
  const bool has_ended = !host.chief->alive();
  if (has_ended || world_.loop().now() >= limit) {
    return world_.Exit(worker, result.ok() ? host.chief_result : result);
  }
  world_.After(worker, kChiefWatch, [this, &worker, result, limit] {
    AwaitChief(worker, result, limit);
  });
}

void GroupControl::EndParts(const Process& worker) {
  const auto host = hosts_.find(worker.number());
  if (host == hosts_.end()) return;
  if (host->second.keeper != nullptr) world_.Kill(*host->second.keeper);
  if (host->second.chief != nullptr) world_.Kill(*host->second.chief);
}

// As Kubernetes and the launcher go by the exit codes of docs/operations.md.
void GroupControl::OnExit(Process& process, const absl::Status& status) {
  EndParts(process);
  const bool is_stop = stop_.TakesExit(status);
  if (is_stop && process.place() == kChief) {
    CheckStopped(static_cast<const ChiefProcess&>(process));
  }
  if (process.place() == kKeeper) return;
  if (process.place() == kChief) return OnChiefExit(process, status);
  // A leftover of a place that has been given to another process.
  if (process.number() != newest_[process.place()]) return;
  if (status.ok() || is_stop) return;
  if (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) {
    return LaunchLater(process.place(), kRestart);
  }
  world_.auditor().Violate(
      "wrong end",
      absl::StrCat(process.name(), " ends with ", status.ToString()));
}

void GroupControl::OnChiefExit(const Process& process,
                               const absl::Status& status) {
  // Worker 0 ends with the chief beside it.
  for (auto& [number, host] : hosts_) {
    if (host.chief != &process) continue;
    host.chief_result = status;
    if (status.ok()) continue;
    world_.After(*host.worker, kChiefWatch, [worker = host.worker] {
      worker->End(absl::UnavailableError("the chief beside it has ended"));
    });
  }
  if (process.number() != newest_[kChief]) return;
  if (status.ok()) return EndJob();
  const bool may_pass = absl::IsUnavailable(status) ||
                        absl::IsCancelled(status) ||
                        absl::IsDeadlineExceeded(status);
  if (!may_pass) {
    return world_.auditor().Violate("job failed", status.ToString());
  }
  if (!IsBeside()) LaunchLater(kChief, kRestart);
}

// Worker 0, whose steps count, makes none behind the last checkpoint.
void GroupControl::CheckStopped(const ChiefProcess& chief) {
  if (chief.coordinator() == nullptr) return;
  const Coordinator& coordinator = *chief.coordinator();
  const int64_t counted = coordinator.Status(chief.now()).global_step();
  const int64_t saved =
      coordinator.NewsAt(chief.now()).newest_checkpoint.value_or(0);
  if (counted <= saved) return;
  world_.auditor().Violate(
      "stopped behind its checkpoint",
      absl::StrCat("the chief counts ", counted, " steps, the newest ",
                   "checkpoint has ", saved));
}

void GroupControl::EndJob() {
  has_ended_ = true;
  stop_.Cancel();
  const std::vector<int64_t> steps = world_.disk().Steps();
  if (steps.empty()) {
    return world_.auditor().Violate("ended early", "no checkpoint");
  }
  world_.auditor().Ended(*world_.disk().Find(steps[0]), {});
  auditor_.Ended();
}

ChiefProcess* GroupControl::chief() const {
  return static_cast<ChiefProcess*>(world_.Newest(kChief));
}

GroupControl::Progress GroupControl::ProgressNow() const {
  const ChiefProcess* const process = chief();
  if (process == nullptr || process->coordinator() == nullptr) return {};
  const wire::JobStatus status = process->coordinator()->Status(process->now());
  return {status.phase(), status.global_step(),
          process->coordinator()
              ->NewsAt(process->now())
              .newest_checkpoint.value_or(-1),
          world_.auditor().completed_steps()};
}

void GroupControl::Watch() {
  const absl::Time now = world_.loop().now();
  const Progress progress = ProgressNow();
  if (progress != progress_) {
    progress_ = progress;
    progress_at_ = now;
  }
  const auto& [phase, step, checkpoint, completed] = progress_;
  const bool is_slow =
      schedule_.Has(Kind::kSlowClock) || schedule_.shape.loss > 0;
  absl::Duration limit = is_slow ? kMaxSlowStandstill : kMaxStandstill;
  if (schedule_.Has(Kind::kTerminate, "worker") && !IsBeside()) {
    limit = std::max(limit, kMaxLeavingStandstill);
  }
  if (phase == wire::COMPLETE) limit = kMaxSlowStandstill;
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

}  // namespace parasol::simulation
