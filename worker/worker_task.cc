#include "worker/worker_task.h"

#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "cluster/client/chief_client.h"
#include "cluster/client/chief_session.h"
#include "cluster/client/same_job.h"
#include "cluster/hook/hook_watch.h"
#include "cluster/hook/training_hooks.h"
#include "cluster/inspection/task_inspection.h"
#include "cluster/rpc/server.h"
#include "ml/model/graph.h"
#include "parameters/client/peer_wait_report.h"
#include "parameters/training_parameters.h"
#include "worker/checked_data.h"
#include "worker/failure_report.h"
#include "worker/last_answers.h"
#include "worker/opened_job.h"
#include "worker/placement_follower.h"
#include "worker/step/replica_source.h"
#include "worker/step/step_claims.h"
#include "worker/step/step_source.h"
#include "worker/sync_training_loop.h"
#include "worker/training_loop.h"
#include "worker/training_report.h"
#include "worker/worker_device.h"
#include "worker/worker_parameters.h"

namespace parasol {
namespace {

// Less than half of a lease: one call may go into a dead connection.
constexpr absl::Duration kChiefCallDeadline = absl::Seconds(4);

// The worker's loop in a trace.
constexpr char kTrainingTrack[] = "training";

bool IsTraining(const wire::HeartbeatResponse& state) {
  return state.phase() >= wire::TRAINING;
}

// Returns true for an error that only this worker has met, and that starting it
// again would not mend.
bool EndsTheJob(const absl::Status& error) {
  return !absl::IsCancelled(error) && !absl::IsUnavailable(error);
}

// Returns how a worker ends whose job has ended.
absl::Status EndOf(const wire::HeartbeatResponse& state) {
  if (state.phase() != wire::FAILED) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the job has failed: ", state.failure()));
}

class Task : public WorkerTask {
 public:
  Task(const WorkerTaskOptions& options, Clock& clock,
       MetricsRegistry& registry)
      : options_(options),
        clock_(clock),
        registry_(registry),
        metrics_(registry),
        reported_{.inspection = std::make_shared<TaskInspection>(clock)},
        reporter_(clock, options.hooks, &reported_.inspection->recorder(),
                  kTrainingTrack) {}

  ~Task() override {
    Stop();
    Wait().IgnoreError();  // whoever wanted it has asked before
    // Its session may still report a loss to this object.
    composed_.reset();
  }

  absl::Status Listen() {
    const auto on_lost = [this](absl::Status why) { OnLost(std::move(why)); };
    ASSIGN_OR_RETURN(
        composed_,
        WorkerParameters::Start(
            {options_.task, options_.chief_address, options_.chief_timeout,
             options_.ps_timeout, options_.trust, options_.group, on_lost,
             &reported_.inspection->recorder()},
            clock_, registry_));
    if (options_.listen_address.empty()) return absl::OkStatus();
    ASSIGN_OR_RETURN(
        server_, RpcServer::Start(options_.listen_address, {}, options_.trust));
    return absl::OkStatus();
  }

  int state_port() const override { return composed_->state_port(); }

  void Launch() {
    {
      absl::MutexLock lock(&mu_);
      done_ = false;
    }
    absl::MutexLock join_lock(&join_mu_);
    thread_ = std::thread([this] {
      absl::Status result = Run();
      absl::MutexLock lock(&mu_);
      // A lost session makes everything below it fail: it is the reason.
      result_ = lost_.ok() ? result : lost_;
      done_ = true;
    });
  }

  absl::Status Wait() override {
    {
      absl::MutexLock lock(&mu_);
      mu_.Await(absl::Condition(this, &Task::IsDoneOrStopping));
      AwaitLastAnswers(parameters_, options_.drain_timeout, clock_, mu_,
                       absl::Condition(this, &Task::IsDrained));
    }
    StopParameters();
    absl::MutexLock join_lock(&join_mu_);
    if (thread_.joinable()) thread_.join();
    absl::MutexLock lock(&mu_);
    return result_;
  }

  void Stop() override {
    absl::MutexLock lock(&mu_);
    end_ = End::kStopping;
    if (claims_ != nullptr) claims_->Stop();
  }

 private:
  // Why the task ends, if not by what it does itself.
  enum class End { kNone, kComplete, kStopping };

  bool IsToldToStop() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return end_ == End::kStopping;
  }
  bool IsDoneOrStopping() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return done_ || IsToldToStop();
  }
  bool IsDrained() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return done_ || drained_;
  }
  bool IsStopping() const ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return IsToldToStop();
  }
  // Returns true if nobody wants what the step that computes would give.
  bool MayLeaveStep() const ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return end_ != End::kNone;
  }
  void StopParameters() ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    if (parameters_ != nullptr) parameters_->Stop();
  }

  absl::Status Run();
  // Returns what tells hooks how the job goes, in worker 0; null: nobody asks.
  std::unique_ptr<HookWatch> WatchForHooks();
  void LeaveState(ChiefSession& session) ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<std::unique_ptr<ChiefSession>> JoinCluster();
  absl::Status Prepare(ChiefSession& session);
  absl::Status Train(ChiefSession& session);
  absl::Status AwaitPhase(ChiefSession& session,
                          bool (*reached)(const wire::HeartbeatResponse&));
  // Makes the parameters. Returns false if the job has ended, and needs none.
  absl::StatusOr<bool> Connect(ChiefSession& session) ABSL_LOCKS_EXCLUDED(mu_);
  void StartClaims(ChiefSession& session) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // `placement_version`: before the clients' placement was asked for.
  absl::Status Loop(ChiefSession& session, int64_t placement_version);
  absl::Status RunLoop(TrainingParameters& parameters);
  bool IsInStep() const { return composed_->composition().in_step; }
  void OnComplete();
  void OnLost(absl::Status why);
  void ReportFailure(ChiefSession& session, const absl::Status& failure);
  void Report(wire::HeartbeatRequest& request);

  const WorkerTaskOptions options_;
  Clock& clock_;
  MetricsRegistry& registry_;
  WorkerMetrics metrics_;
  // What was reported so far; the reporting thread's, but for the recorder.
  struct Reported {
    std::shared_ptr<TaskInspection> inspection;
    TrainingReport total = {};
    PeerWaitReport waits = {};
  };
  Reported reported_;
  TrainingReporter reporter_;
  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<WorkerParameters> composed_;

  // What the worker has joined; used by the session's thread, and by Join()
  // before that.
  std::string joined_run_;
  uint64_t joined_layout_ = 0;

  // Used by the task's thread alone, in the order in which they are made; but
  // `parameters_`, which sends from the model's memory, goes first.
  OpenedJob opened_;
  bool has_failed_ = false;  // ReportFailure() was called
  // `claims_`, as what the job's loop needs of it; the other is nullptr.
  ChiefStepSource* steps_ = nullptr;
  ChiefReplicaSource* replicas_ = nullptr;

  mutable absl::Mutex mu_;
  std::unique_ptr<TrainingParameters> parameters_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<StepClaims> claims_ ABSL_GUARDED_BY(mu_);
  End end_ ABSL_GUARDED_BY(mu_) = End::kNone;
  bool drained_ ABSL_GUARDED_BY(mu_) = false;  // sends nothing any more
  bool done_ ABSL_GUARDED_BY(mu_) = true;      // until Launch()
  absl::Status lost_ ABSL_GUARDED_BY(mu_);
  absl::Status result_ ABSL_GUARDED_BY(mu_);

  absl::Mutex join_mu_;  // two callers of Wait()
  std::thread thread_ ABSL_GUARDED_BY(join_mu_);
};

absl::Status Task::Run() {
  ASSIGN_OR_RETURN(std::unique_ptr<ChiefSession> session, JoinCluster());
  session->OnLost([this](absl::Status why) { OnLost(std::move(why)); });
  // It has registered all the same: the chief waits for it.
  if (HasEnded(session->state())) {
    session->Leave(/*completed_steps=*/0);
    return EndOf(session->state());
  }
  if (server_ != nullptr) server_->SetServing(true);
  std::unique_ptr<HookWatch> watch = WatchForHooks();

  const absl::Status prepared = Prepare(*session);
  if (!prepared.ok() && EndsTheJob(prepared)) ReportFailure(*session, prepared);
  absl::Status result = prepared.ok() ? Train(*session) : prepared;

  int64_t completed = 0;
  std::unique_ptr<TrainingParameters> parameters;
  std::unique_ptr<StepClaims> claims;
  {
    absl::MutexLock lock(&mu_);
    parameters = std::move(parameters_);
    claims = std::move(claims_);
    if (claims != nullptr) completed = claims->completed_steps();
  }
  // Both join threads, without this lock. Claims call the parameters.
  claims.reset();
  parameters.reset();
  watch.reset();
  LeaveState(*session);
  session->Leave(completed);
  return result;
}

std::unique_ptr<HookWatch> Task::WatchForHooks() {
  const bool has_hooks =
      options_.hooks != nullptr && !options_.hooks->is_empty();
  if (!has_hooks || options_.task.index() != 0) return nullptr;
  return std::make_unique<HookWatch>(
      ChiefClient::Create(options_.chief_address, kChiefCallDeadline,
                          Callee::Chief(options_.trust)),
      *options_.hooks, clock_);
}

// A worker that was told to stop still writes a checkpoint: the chief beside it
// orders its last one, another chief is asked.
void Task::LeaveState(ChiefSession& session) {
  if (has_failed_ || HasEnded(session.state())) return composed_->Leave();
  {
    absl::MutexLock lock(&mu_);
    drained_ = true;
    if (!IsToldToStop() || !lost_.ok()) return;
  }
  composed_->AwaitCheckpoint(kCheckpointLimit);
}

absl::StatusOr<std::unique_ptr<ChiefSession>> Task::JoinCluster() {
  ChiefSession::Options options;
  options.task = options_.task;
  options.metrics_address = options_.metrics_address;
  options.chief_timeout = options_.chief_timeout;
  options.checkpoint_directory = options_.checkpoint_directory;
  options.inspection = reported_.inspection;
  options.on_registered = [this](const wire::RegisterResponse& first,
                                 const wire::RegisterResponse& answer) {
    joined_run_ = first.run_id();
    joined_layout_ = first.layout();
    return CheckWorkerGoesOn(first, answer);
  };
  options.describe = [this](wire::RegisterRequest& request) {
    request.set_run_id(joined_run_);
    request.set_layout(joined_layout_);
    composed_->Describe(request);
    absl::MutexLock lock(&mu_);
    if (claims_ != nullptr) claims_->Describe(request);
  };
  options.report = [this](wire::HeartbeatRequest& request) { Report(request); };
  return ChiefSession::Join(
      ChiefClient::Create(options_.chief_address, kChiefCallDeadline,
                          Callee::Chief(options_.trust)),
      std::move(options), clock_, registry_, [this] { return IsStopping(); });
}

// Everything that can be wrong with this worker's own data and device, before
// it waits for anybody.
absl::Status Task::Prepare(ChiefSession& session) {
  const job::Job& job = session.registration().job();
  RETURN_IF_ERROR(composed_->Choose(job));
  const auto is_stopping = [this] { return IsStopping(); };
  RETURN_IF_ERROR(opened_.Open(job,
                               {.data_dir = options_.data_dir,
                                .device = options_.device,
                                .threads = options_.threads,
                                .workers = options_.input_shards,
                                .is_in_step = IsInStep(),
                                .cancelled = [this] { return MayLeaveStep(); }},
                               [&](const Graph& graph) {
                                 return CheckWorkerData(
                                     job, graph, options_.data_dir, session,
                                     options_.ps_timeout, is_stopping);
                               }));
  return composed_->Prepare(session.registration(), opened_.devices(),
                            is_stopping);
}

absl::Status Task::Train(ChiefSession& session) {
  RETURN_IF_ERROR(AwaitPhase(session, IsTraining));
  const int64_t placement_version = session.state().placement_version();
  ASSIGN_OR_RETURN(const bool connected, Connect(session));
  if (connected) {
    const absl::Status looped = Loop(session, placement_version);
    // Others may have done the last steps while this worker stood still.
    if (!looped.ok() && session.state().phase() != wire::COMPLETE) {
      return looped;
    }
  }
  // Every step is done; the chief writes the last checkpoint.
  RETURN_IF_ERROR(AwaitPhase(session, HasEnded));
  return EndOf(session.state());
}

absl::Status Task::AwaitPhase(ChiefSession& session,
                              bool (*reached)(const wire::HeartbeatResponse&)) {
  return session.Await(
      [reached](const wire::HeartbeatResponse& state) {
        return reached(state) || HasEnded(state);
      },
      options_.ps_timeout, [this] { return IsStopping(); });
}

absl::StatusOr<bool> Task::Connect(ChiefSession& session) {
  wire::GetPlacementResponse shards;
  if (composed_->composition().has_ps()) {
    const absl::StatusOr<wire::GetPlacementResponse> placement = AwaitPlacement(
        session, options_.ps_timeout, [this] { return IsStopping(); });
    if (HasEnded(session.state())) return false;
    ASSIGN_OR_RETURN(shards, placement);
  }
  ASSIGN_OR_RETURN(std::unique_ptr<TrainingParameters> parameters,
                   composed_->Make(shards));
  absl::MutexLock lock(&mu_);
  parameters_ = std::move(parameters);
  StartClaims(session);
  return true;
}

void Task::StartClaims(ChiefSession& session) {
  if (IsInStep()) {
    ChiefReplicaSource::Options options;
    composed_->SetUp(options);
    options.task = options_.task;
    options.train_examples = opened_.input().total_examples();
    options.shard_examples = opened_.shard_examples();
    options.files = opened_.files();
    auto replicas =
        ChiefReplicaSource::Create(std::move(options), session.chief(), clock_);
    replicas_ = replicas.get();
    claims_ = std::move(replicas);
  } else {
    ChiefStepSource::Options options;
    options.task = options_.task;
    options.train_examples = opened_.input().total_examples();
    options.shard_examples = opened_.shard_examples();
    options.files = opened_.files();
    auto steps =
        ChiefStepSource::Create(std::move(options), session.chief(), clock_);
    steps_ = steps.get();
    claims_ = std::move(steps);
  }
  if (IsToldToStop()) claims_->Stop();
}

absl::Status Task::Loop(ChiefSession& session, int64_t placement_version) {
  TrainingParameters* parameters;
  {
    absl::MutexLock lock(&mu_);
    parameters = parameters_.get();
  }
  absl::Status result;
  {
    PlacementFollower::Options options = {
        .known_version = placement_version,
        .on_complete = [this] { OnComplete(); },
        .on_lost = [this](absl::Status why) { OnLost(std::move(why)); }};
    composed_->SetUp(options);
    PlacementFollower follower(std::move(options), session, clock_);
    result = RunLoop(*parameters);
  }
  if (absl::IsFailedPrecondition(result)) {
    return WhyRefused(session, result, clock_, [this] { return IsStopping(); });
  }
  if (!result.ok() && EndsTheJob(result) && !HasEnded(session.state())) {
    ReportFailure(session, result);
  }
  return result;
}

absl::Status Task::RunLoop(TrainingParameters& parameters) {
  reported_.inspection->ShowThisThreadFirst();
  if (IsInStep()) {
    SyncTrainingLoop::Options options;
    options.points = opened_.points();
    composed_->SetUp(options);
    return TrainReplicas(std::move(options), opened_.job(), opened_.devices(),
                         opened_.input(), parameters, *replicas_, clock_,
                         metrics_, reporter_);
  }
  const job::Job& job = opened_.job();
  LowerPriorityFor(opened_.devices().front(), job);
  TrainingLoop::Options options = TrainingLoop::OptionsOf(job);
  options.worker = options_.task.index();
  options.points = opened_.points();
  return TrainingLoop(options, *opened_.devices().front().model,
                      opened_.input(), parameters, *steps_, clock_, metrics_,
                      reporter_)
      .Run();
}

void Task::OnComplete() {
  absl::MutexLock lock(&mu_);
  if (end_ == End::kNone) end_ = End::kComplete;
  claims_->Stop();
  parameters_->Stop();
}

void Task::OnLost(absl::Status why) {
  absl::MutexLock lock(&mu_);
  if (lost_.ok()) lost_ = std::move(why);
  end_ = End::kStopping;
  if (claims_ != nullptr) claims_->Stop();
  if (parameters_ != nullptr) parameters_->Stop();
}

void Task::ReportFailure(ChiefSession& session, const absl::Status& failure) {
  const auto wait = [this](absl::Duration time) {
    absl::MutexLock lock(&mu_);
    clock_.AwaitWithTimeout(mu_, absl::Condition(this, &Task::IsToldToStop),
                            time);
  };
  parasol::ReportFailure(session.chief(), options_.task, failure,
                         /*has_begun=*/opened_.has_data(), wait);
  has_failed_ = true;
}

void Task::Report(wire::HeartbeatRequest& request) {
  const TrainingReport report = reporter_.Take();
  ShowWaitRatio(report.times, metrics_.wait_ratio);
  ReportTraining(report, reported_.total, request);
  absl::MutexLock lock(&mu_);
  if (parameters_ == nullptr) return;
  reported_.waits.Report(parameters_->PeerWaits(), clock_.Now(), request);
}

}  // namespace

absl::StatusOr<std::unique_ptr<WorkerTask>> WorkerTask::Start(
    const WorkerTaskOptions& options, Clock& clock, MetricsRegistry& metrics) {
  auto task = std::make_unique<Task>(options, clock, metrics);
  RETURN_IF_ERROR(task->Listen());
  task->Launch();
  return task;
}

}  // namespace parasol
