#include "tests/simulation/worker_process.h"

#include <algorithm>
#include <utility>

#include "tests/simulation/chief_process.h"
#include "tests/simulation/standby_link.h"

namespace parasol::simulation {
namespace {

constexpr absl::Duration kWorkerDeadline = absl::Seconds(5);
constexpr absl::Duration kOperationDeadline = absl::Seconds(10);
constexpr absl::Duration kResendInterval = absl::Milliseconds(200);
constexpr absl::Duration kShardTimeout = absl::Minutes(5);
// As in worker/last_answers.h, and WorkerTaskOptions::drain_timeout.
constexpr absl::Duration kAwayLimit = absl::Milliseconds(500);
constexpr absl::Duration kDrainLook = absl::Milliseconds(100);

absl::Status StartAgain() {
  return absl::UnavailableError("the job is another one: starts again");
}

}  // namespace

WorkerProcess::WorkerProcess(World& world, int index, int number)
    : Process(world, {"worker", index}, number),
      session_(world, *this,
               {.describe =
                    [this](wire::RegisterRequest& request) {
                      Describe(request);
                      if (!has_job_) return;
                      request.set_run_id(session_.registration().run_id);
                      request.set_layout(session_.registration().layout);
                    },
                .report = [](wire::HeartbeatRequest&) {},
                .on_registered =
                    [this](const Registration& registration) {
                      OnRegistered(registration);
                    },
                .on_state = [this](const auto& state) { OnState(state); },
                .on_lost =
                    [this](const absl::Status& why) {
                      this->world().Exit(*this, why);
                    }}) {}

void WorkerProcess::OnRegistered(const Registration& registration) {
  if (!has_job_) {
    has_job_ = true;
    return world().auditor().WorkerEnters(incarnation());
  }
  CheckVariables(registration.run_id, registration.layout);
  const Registration& first = session_.registration();
  if (world().rules().one_job && !(registration.job == first.job)) {
    Fail(StartAgain());
  }
}

void WorkerProcess::CheckVariables(const std::string& run_id, uint64_t layout) {
  const Registration& first = session_.registration();
  if (world().rules().worker_follows_layout &&
      (run_id != first.run_id || layout != first.layout)) {
    Fail(StartAgain());
  }
}

void WorkerProcess::OnState(const wire::HeartbeatResponse& state) {
  if (has_failed_) return;
  if (state.phase() == wire::COMPLETE) {
    StopLoop();
    return session_.LeaveAndExit(completed_steps(), absl::OkStatus());
  }
  if (state.phase() == wire::FAILED) {
    return Fail(absl::FailedPreconditionError("the job has failed"));
  }
  CheckVariables(state.run_id(), state.layout());
  if (has_failed_ || (state.phase() < wire::TRAINING && !is_placed_)) return;
  if (state.placement_version() != placement_version_) AskForPlacement();
}

void WorkerProcess::AskForPlacement() {
  if (std::exchange(is_asking_, true)) return;
  wire::GetPlacementRequest request;
  *request.mutable_task() = task();
  world().Call<ChiefProcess, wire::GetPlacementResponse>(
      *this, {"chief", 0}, kWorkerDeadline,
      [request](ChiefProcess& chief,
                const World::Done<wire::GetPlacementResponse>& done) {
        chief.GetPlacement(request, done);
      },
      [this](const absl::StatusOr<wire::GetPlacementResponse>& answer) {
        is_asking_ = false;
        TakePlacement(answer);
      });
}

void WorkerProcess::TakePlacement(
    const absl::StatusOr<wire::GetPlacementResponse>& answer) {
  // The next heartbeat asks again.
  if (has_failed_ || !answer.ok()) return;
  CheckVariables(answer->run_id(), answer->layout());
  if (has_failed_) return;
  std::vector<uint64_t> incarnations;
  std::vector<TaskId> places;
  for (const wire::Shard& shard : answer->shard()) {
    incarnations.push_back(shard.incarnation());
    places.push_back(PlaceOf(shard.address()));
  }
  for (size_t i = 0; i < incarnations.size(); ++i) {
    if (is_placed_ && incarnations[i] == ps_incarnations_[i]) continue;
    world().DropConnection(*this, places[i]);
    if (is_placed_) world().DropConnection(*this, ps_places_[i]);
  }
  const bool has_moved = is_placed_ && incarnations != ps_incarnations_;
  ps_incarnations_ = std::move(incarnations);
  ps_places_ = std::move(places);
  placement_version_ = answer->placement_version();
  run_id_ = answer->run_id();
  if (has_moved) OnMoved();
  if (std::exchange(is_placed_, true)) return;
  layout_ = session_.registration().layout;
  BeginLoop();
}

void WorkerProcess::Send(int shard, Operation operation, Answered done) {
  operation.worker = incarnation();
  SendUntil(world().Now(*this) + kShardTimeout, shard, std::move(operation),
            std::move(done));
}

void WorkerProcess::SendUntil(absl::Time give_up, int shard,
                              Operation operation, Answered done) {
  if (has_failed_) return;
  operation.run_id = run_id_;
  operation.layout = layout_;
  operation.incarnation = ps_incarnations_[shard];
  world().Call<PsProcess, OperationResult>(
      *this, ps_places_[shard], kOperationDeadline,
      [operation](PsProcess& ps, const World::Done<OperationResult>& done) {
        ps.Execute(operation, done);
      },
      [this, give_up, shard, operation, done = std::move(done)](
          const absl::StatusOr<OperationResult>& response) mutable {
        if (has_failed_) return;
        if (response.ok()) {
          refused_since_ = absl::InfiniteFuture();
          return done(*response);
        }
        refused_since_ = std::min(refused_since_, world().Now(*this));
        const bool may_pass = absl::IsUnavailable(response.status()) ||
                              absl::IsDeadlineExceeded(response.status());
        if (absl::IsFailedPrecondition(response.status())) {
          return Fail(StartAgain());
        }
        if (!may_pass) return Fail(response.status());
        if (world().Now(*this) >= give_up) {
          return Fail(absl::UnavailableError("a ps does not answer"));
        }
        world().After(*this, kResendInterval,
                      [this, give_up, shard, operation,
                       done = std::move(done)]() mutable {
                        SendUntil(give_up, shard, operation, std::move(done));
                      });
      });
}

void WorkerProcess::Terminate() {
  world().After(*this, absl::ZeroDuration(), [this] {
    if (has_failed_) return;
    world().Trace(this, "is told to end");
    LeaveWhenDrained();
  });
}

void WorkerProcess::LeaveWhenDrained() {
  if (has_failed_) return;
  const bool is_in_vain = world().Now(*this) - refused_since_ >= kAwayLimit;
  if (Drain() || is_in_vain) return Fail(StartAgain());
  world().After(*this, kDrainLook, [this] { LeaveWhenDrained(); });
}

// Task::Loop(): an error that only this worker has met ends the job, unless a
// start mends it or another process has the place.
void WorkerProcess::Fail(const absl::Status& status) {
  if (std::exchange(has_failed_, true)) return;
  StopLoop();
  const auto leave = [this, status] {
    session_.LeaveAndExit(completed_steps(), status);
  };
  const bool may_pass =
      absl::IsUnavailable(status) || absl::IsFailedPrecondition(status);
  if (may_pass || session_.state().phase() >= wire::COMPLETE) return leave();
  session_.ReportFailure(status, leave);
}

}  // namespace parasol::simulation
