#include "tests/simulation/group/group_worker.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/log.h"
#include "tests/simulation/group/group_model.h"
#include "tests/simulation/group/group_planner.h"
#include "tests/simulation/job_of.h"

namespace parasol::simulation {
namespace {

// As SyncTrainingLoop's, and WorkerTask's StepTimeout().
constexpr absl::Duration kLookInterval = absl::Milliseconds(50);
constexpr absl::Duration kNamedAfter = absl::Seconds(10);
constexpr absl::Duration kStepTimeout = absl::Minutes(5);
constexpr absl::Duration kEndInterval = absl::Milliseconds(100);

GroupParameters::Options OptionsOf(const Shape& shape, const wire::Task& task) {
  GroupParameters::Options options;
  options.task = task;
  options.replicas = shape.replicas;
  options.bytes_per_pack = kBytesPerPack;
  options.planner = PlannerOf(shape);
  return options;
}

}  // namespace

GroupWorker::GroupWorker(World& world, int index, int number,
                         const Cluster& cluster)
    : Process(world, {"worker", index}, number),
      cluster_(cluster),
      threads_(world, *this, cluster.turns, [this] { Observe(); }),
      endpoint_(world, *this, threads_, cluster.points, cluster.lookup),
      session_(world, *this,
               {.describe =
                    [this](wire::RegisterRequest& request) {
                      request.set_collective_address(AddressOf(place().index));
                      request.set_completed_steps(steps());
                      if (state_ == nullptr) return;
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
                      is_lost_ = true;
                      End(why);
                    }}),
      claims_(world, *this, [this] { OnNews(); }) {}

GroupWorker::~GroupWorker() {
  Ended();
  parameters_.reset();
  if (state_ != nullptr) state_->steps().End(absl::CancelledError("gone"));
  threads_.Drain();
  for (std::thread& thread : more_threads_) thread.join();
}

// The threads stay where they are until the object is destroyed.
void GroupWorker::Ended() {
  if (threads_.is_abandoned()) return;
  threads_.Abandon();
  endpoint_.Abandon();
}

std::string GroupWorker::AddressOf(int index) {
  // Two workers share a machine.
  return absl::StrCat("host", index / 2, ":", index);
}

void GroupWorker::OnRegistered(const Registration& registration) {
  if (state_ != nullptr) {
    CheckVariables(registration.run_id, registration.layout);
    if (!(registration.job == session_.registration().job)) {
      Fail(absl::UnavailableError("the job is another one: starts again"));
    }
    return;
  }
  const Shape& shape = world().schedule().shape;
  state_ = std::make_unique<GroupState>(
      GroupVariables(), simulation::OptionsOf(shape, registration.job).job,
      threads_);
  if (place().index == 0) cluster_.join_keeper(*this);
}

void GroupWorker::CheckVariables(const std::string& run_id, uint64_t layout) {
  const Registration& first = session_.registration();
  if (run_id == first.run_id && layout == first.layout) return;
  Fail(absl::UnavailableError("the variables are others: starts again"));
}

void GroupWorker::OnState(const wire::HeartbeatResponse& state) {
  if (is_ending_) return;
  if (state.phase() == wire::COMPLETE) return End(absl::OkStatus());
  if (state.phase() == wire::FAILED) {
    return Fail(absl::FailedPreconditionError("the job has failed"));
  }
  CheckVariables(state.run_id(), state.layout());
  if (is_ending_ || state.phase() < wire::TRAINING) return;
  if (!std::exchange(has_begun_, true)) BeginLoop();
}

void GroupWorker::BeginLoop() {
  threads_.Start([this] {
    parameters_ = std::make_unique<GroupParameters>(
        OptionsOf(world().schedule().shape, task()), *state_, endpoint_,
        threads_, registry_);
  });
  claims_.SetParameters(parameters_.get(), &cluster_.auditor);
  claims_.Begin();
  Watch();
}

void GroupWorker::OnNews() {
  if (is_ending_) return;
  if (!claims_.failure().ok()) return Fail(claims_.failure());
  if (stage_ == Stage::kInStep) return ComputeNext();
  BeginStep();
}

void GroupWorker::BeginStep() {
  if (is_ending_ || stage_ != Stage::kIdle || !claims_.HasWork()) return;
  stage_ = Stage::kPulling;
  waits_since_ = threads_.Now();
  TakeValues();
}

// PullValues(): once there is a state.
void GroupWorker::TakeValues() {
  if (stage_ != Stage::kPulling || is_ending_) return;
  values_.clear();
  TrainingParameters::PullRequest pull;
  for (const VariableSpec& variable : state_->variables()) {
    values_.emplace_back(variable.elements());
  }
  for (size_t i = 0; i < values_.size(); ++i) {
    pull.targets.push_back({i, absl::MakeSpan(values_[i])});
  }
  const auto pending = parameters_->Pull(std::move(pull));
  if (!pending->WaitFor(absl::ZeroDuration()) || !pending->Wait().ok()) return;
  step_ = pending->outcome().max_updates;
  stage_ = Stage::kIdle;
  claims_.NoteSteps();
  if (step_ >= claims_.share().end_step) return BeginStep();
  stage_ = Stage::kInStep;
  waits_since_ = threads_.Now();
  computed_.clear();
  ComputeNext();
}

void GroupWorker::ComputeNext() {
  for (const int replica : claims_.share().replicas) {
    if (computing_ == world().schedule().shape.devices) return;
    if (computed_.insert(replica).second) Compute(replica);
  }
  if (computing_ > 0) return;
  claims_.Pushed(step_ + 1);
  CheckStep();
}

void GroupWorker::Compute(int replica) {
  ++computing_;
  const absl::Duration compute = world().schedule().shape.compute;
  world().After(*this, world().random().Between(compute / 2, compute * 1.5),
                [this, replica] {
                  --computing_;
                  Push(replica);
                  if (!is_ending_) return ComputeNext();
                  if (computing_ == 0) StopParameters();
                });
}

void GroupWorker::Push(int replica) {
  std::vector<std::vector<float>> gradients;
  TrainingParameters::PushRequest push;
  for (size_t i = 0; i < values_.size(); ++i) {
    gradients.push_back(
        GroupGradient(world().schedule().shape, step_, replica, i, values_[i]));
    push.gradients.push_back({i, gradients.back()});
  }
  push.sync = {.step = step_, .replica = replica};
  parameters_->Push(std::move(push));
}

// AwaitPushes(): until the step is made.
void GroupWorker::CheckStep() {
  const bool is_waiting =
      stage_ == Stage::kInStep && computing_ == 0 && !is_ending_;
  if (!is_waiting || state_->version().step <= step_) return;
  stage_ = Stage::kIdle;
  claims_.NoteSteps();
  BeginStep();
}

void GroupWorker::Observe() {
  if (state_ == nullptr || !alive()) return;
  const GroupState::Version version = state_->version();
  if (version != seen_) {
    GroupContents contents;
    const absl::Status read =
        state_->Read([&contents](ParameterStore& parameters) {
          contents = ContentsOf(parameters);
          return absl::OkStatus();
        });
    if (read.ok()) {
      world().Trace(this, "is at step ", version.step, " of group ",
                    version.epoch & 0xffffffff);
      cluster_.auditor.StateChanges(name(), seen_, version, contents);
    }
    seen_ = version;
    if (place().index == 0) {
      world().auditor().StepReached(std::max<int64_t>(0, version.step));
    }
  }
  const absl::Status ended = state_->steps().ended();
  if (!is_ending_ && !ended.ok()) return Fail(ended);
  TakeValues();
  CheckStep();
}

void GroupWorker::Watch() {
  if (is_ending_) return;
  const bool is_waiting = stage_ != Stage::kIdle && computing_ == 0;
  const absl::Time now = threads_.Now();
  // One look may come right after the process stood still.
  const bool is_long = is_waiting && now - waits_since_ >= kNamedAfter;
  if (is_long && std::exchange(long_wait_, waits_since_) == waits_since_) {
    const TrainingParameters::Awaited awaited = parameters_->Unanswered();
    cluster_.auditor.Waits(name(), awaited.peers);
    const absl::Time since = std::max(waits_since_, awaited.last_loading);
    if (now - since >= kStepTimeout) {
      return Fail(absl::UnavailableError("a step was not complete"));
    }
  }
  world().After(*this, kNamedAfter / 2, [this] { Watch(); });
}

// Task::Loop(): an error that only this worker has met ends the job, unless a
// start mends it.
void GroupWorker::Fail(const absl::Status& status) {
  if (is_ending_ || is_failing_) return;
  const bool may_pass = absl::IsUnavailable(status) ||
                        absl::IsCancelled(status) ||
                        absl::IsFailedPrecondition(status);
  if (may_pass || session_.state().phase() >= wire::COMPLETE) {
    return End(status);
  }
  is_failing_ = true;
  world().Trace(this, "fails: ", status.ToString());
  session_.ReportFailure(status, [this, status] { End(status); });
}

void GroupWorker::Terminate() {
  was_told_to_end_ = !is_ending_;
  End(absl::UnavailableError("told to end"));
}

void GroupWorker::End(const absl::Status& result) {
  if (std::exchange(is_ending_, true)) return;
  world().Trace(this, "begins to end: ", result.ToString());
  result_ = result;
  claims_.Stop();
  if (parameters_ == nullptr) return Leave();
  // A loop that is told to stop computes its step's gradients first, unless the
  // job is over or the chief is lost.
  const bool computes_on = computing_ > 0 && !is_lost_ && !result.ok();
  if (!computes_on) StopParameters();
}

void GroupWorker::StopParameters() {
  if (std::exchange(is_stopping_, true)) return;
  parameters_->Stop();
  AwaitEnd();
}

void GroupWorker::AwaitEnd() {
  if (!state_->steps().ended().ok()) return Leave();
  parameters_->AbortIfStopping();
  world().After(*this, kEndInterval, [this] { AwaitEnd(); });
}

void GroupWorker::Leave() {
  if (is_lost_) return cluster_.has_left(*this, result_);
  session_.Leave(steps(), [this] { cluster_.has_left(*this, result_); });
}

void GroupWorker::RunThread(std::function<void()> run) {
  threads_.Start([this, &run] {
    more_threads_.emplace_back([this, run] {
      threads_.Enter();
      run();
    });
  });
  Observe();
}

}  // namespace parasol::simulation
