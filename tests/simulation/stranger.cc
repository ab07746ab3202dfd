#include "tests/simulation/stranger.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "cluster/trust/process_secret.h"

namespace parasol::simulation {
namespace {

constexpr absl::Duration kLongestPause = absl::Milliseconds(700);
constexpr int64_t kAbsurd = int64_t{1} << 30;

}  // namespace

Stranger::Stranger(World& world)
    : world_(world), random_(world.schedule().seed ^ 0x57a4e2) {}

void Stranger::Wait() {
  world_.loop().At(world_.loop().now() +
                       random_.Between(absl::Milliseconds(1), kLongestPause),
                   [this] {
                     Act();
                     Wait();
                   });
}

void Stranger::Act() {
  for (Process* const process : world_.Live()) {
    if (process->stopped()) continue;
    if (process->place().role == "chief") {
      Ask(static_cast<ChiefProcess&>(*process));
    } else if (process->place().role == "ps") {
      Ask(static_cast<PsProcess&>(*process));
    }
  }
}

template <typename Response>
World::Done<Response> Stranger::Refused(absl::string_view what) {
  return [this,
          what = std::string(what)](const absl::StatusOr<Response>& response) {
    if (!response.ok()) return;
    world_.auditor().Violate("stranger",
                             absl::StrCat("a stranger's ", what, " is obeyed"));
  };
}

wire::Task Stranger::AnyTask() {
  static constexpr absl::string_view kRoles[] = {"ps", "worker", "worker"};
  wire::Task task;
  task.set_role(std::string(kRoles[random_.Below(3)]));
  task.set_index(static_cast<int>(random_.Below(4)));
  task.set_incarnation(random_.Next() | 1);
  return task;
}

void Stranger::Ask(ChiefProcess& chief) {
  const wire::Task task = AnyTask();
  const auto steps = static_cast<int64_t>(random_.Below(kAbsurd));
  switch (random_.Below(5)) {
    case 0: {
      wire::GetPlacementRequest request;
      *request.mutable_task() = task;
      return chief.GetPlacement(
          request, Refused<wire::GetPlacementResponse>("GetPlacement"));
    }
    case 1: {
      wire::ClaimStepsRequest request;
      *request.mutable_task() = task;
      request.set_completed_steps(steps);
      request.set_started_steps(steps);
      request.set_pushed_steps(steps);
      return chief.ClaimSteps(request,
                              Refused<wire::ClaimStepsResponse>("ClaimSteps"));
    }
    case 2: {
      wire::HeartbeatRequest request;
      *request.mutable_task() = task;
      request.set_leaving(true);
      request.set_updates(steps);
      return chief.Heartbeat(request,
                             Refused<wire::HeartbeatResponse>("Heartbeat"));
    }
    case 3: {
      wire::ReportFailureRequest request;
      *request.mutable_task() = task;
      request.set_message("a stranger's");
      return chief.ReportFailure(
          request, Refused<wire::ReportFailureResponse>("ReportFailure"));
    }
    default: {
      wire::LeaveRequest request;
      *request.mutable_task() = task;
      request.set_completed_steps(steps);
      return chief.Leave(request, Refused<wire::LeaveResponse>("Leave"));
    }
  }
}

uint64_t Stranger::AnyIncarnation(const PsProcess& ps) {
  switch (random_.Below(3)) {
    case 0:
      return 0;
    case 1:
      return PublicNumber(ps.incarnation());
    default:
      return random_.Next() | 1;
  }
}

void Stranger::Ask(PsProcess& ps) {
  const std::string run_id = ps.held() == nullptr ? "" : ps.held()->run_id;
  const int64_t chief_epoch =
      random_.Chance(500) ? kAbsurd : static_cast<int64_t>(random_.Below(9));
  switch (random_.Below(4)) {
    case 0:
      return ps.Load({.run_id = run_id,
                      .incarnation = AnyIncarnation(ps),
                      .chief_epoch = chief_epoch,
                      .number = kAbsurd},
                     Refused<Nothing>("Load"));
    case 1:
      return ps.Snapshot(
          {.run_id = run_id,
           .incarnation = AnyIncarnation(ps),
           .chief_epoch = chief_epoch,
           .stay = true},
          Refused<std::shared_ptr<const ShardValues>>("Snapshot"));
    case 2:
      return ps.PrepareSnapshot({.run_id = run_id,
                                 .incarnation = AnyIncarnation(ps),
                                 .chief_epoch = chief_epoch},
                                Refused<Updates>("PrepareSnapshot"));
    default: {
      Operation operation;
      operation.run_id = run_id;
      operation.worker = random_.Next() | 1;
      // What workers name is told to workers alone.
      operation.incarnation = random_.Next() | 1;
      operation.sequence = random_.Below(2);
      return ps.Execute(operation, Refused<OperationResult>("push or pull"));
    }
  }
}

}  // namespace parasol::simulation
