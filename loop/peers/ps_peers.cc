#include "loop/peers/ps_peers.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "cluster/client/chief_client.h"
#include "cluster/client/same_job.h"
#include "loop/peers/program_description.h"
#include "loop/peers/reported_iteration.h"
#include "storage/checkpoint_reader.h"
#include "storage/checkpoint_store.h"
#include "storage/shard_entry.h"
#include "worker/failure_report.h"
#include "worker/store/parameter_store.h"

namespace parasol {
namespace {

// Less than half of a lease: one call may go into a dead connection.
constexpr absl::Duration kChiefCallDeadline = absl::Seconds(4);

bool TrainsOrHasEnded(const wire::HeartbeatResponse& state) {
  return state.phase() >= wire::TRAINING;
}

absl::Status JobHasFailed(const wire::HeartbeatResponse& state) {
  return absl::FailedPreconditionError(
      absl::StrCat("the job has failed: ", state.failure()));
}

}  // namespace

PsPeers::PsPeers(Options options, Clock& clock)
    : LocalPeers(options.replicas),
      options_(std::move(options)),
      clock_(clock),
      registry_(MetricsOf(options_.settings, own_metrics_)),
      metrics_(registry_),
      recorded_(registry_),
      inspection_(std::make_shared<TaskInspection>(clock)),
      reporter_(clock, /*hooks=*/nullptr, &inspection_->recorder(),
                "training") {}

PsPeers::~PsPeers() {
  // Its thread uses the parameters.
  if (session_ != nullptr) session_->Stop();
  Disconnect();
}

absl::StatusOr<int64_t> PsPeers::Begin(ParameterStore& store,
                                       const std::vector<std::string>&) {
  store_ = &store;
  begun_end_ = end();
  if (!options_.listen_address.empty()) {
    ASSIGN_OR_RETURN(
        server_, RpcServer::Start(options_.listen_address, {}, options_.trust));
  }
  RETURN_IF_ERROR(Join(JobOfProgram(store.job(), options_.settings, end())));
  if (server_ != nullptr) server_->SetServing(true);
  RETURN_IF_ERROR(Why(session_->Await(TrainsOrHasEnded, options_.peer_timeout,
                                      [this] { return IsStopping(); })));
  if (session_->state().phase() == wire::FAILED) {
    return JobHasFailed(session_->state());
  }
  RETURN_IF_ERROR(Why(Connect(store)));
  // It may have ended while this worker waited for the ps.
  if (session_->state().phase() == wire::FAILED) {
    return JobHasFailed(session_->state());
  }
  if (session_->state().phase() == wire::COMPLETE) TakeLastValues();
  reporter_.Begin(StepPart::kCompute, clock_.Now());
  return session_->state().global_step();
}

absl::Status PsPeers::Join(const job::Job& job) {
  ChiefSession::Options options;
  options.task = options_.task;
  options.metrics_address = options_.settings.metrics_address;
  options.chief_timeout = options_.peer_timeout;
  options.checkpoint_directory = options_.settings.checkpoint_directory;
  options.inspection = inspection_;
  inspection_->ShowThisThreadFirst();
  options.on_registered =
      [this, job](const wire::RegisterResponse& first,
                  const wire::RegisterResponse& answer) -> absl::Status {
    joined_run_ = first.run_id();
    joined_layout_ = first.layout();
    const absl::Status same = CheckSameProgram(first.job(), job);
    if (!same.ok()) LeaveUnheard();
    RETURN_IF_ERROR(same);
    return CheckWorkerGoesOn(first, answer);
  };
  options.describe = [this](wire::RegisterRequest& request) {
    request.set_run_id(joined_run_);
    request.set_layout(joined_layout_);
    absl::MutexLock lock(&mu_);
    if (steps_ != nullptr) steps_->Describe(request);
  };
  options.report = [this](wire::HeartbeatRequest& request) { Report(request); };
  ASSIGN_OR_RETURN(session_, ChiefSession::Join(
                                 ChiefClient::Create(
                                     options_.chief_address, kChiefCallDeadline,
                                     Callee::Chief(options_.trust)),
                                 std::move(options), clock_, registry_,
                                 [this] { return IsStopping(); }));
  session_->OnLost([this](absl::Status why) { OnLost(std::move(why)); });
  return absl::OkStatus();
}

void PsPeers::LeaveUnheard() {
  wire::LeaveRequest request;
  *request.mutable_task() = options_.task;
  const absl::Status left =
      ChiefClient::Create(options_.chief_address, kChiefCallDeadline,
                          Callee::Chief(options_.trust))
          ->Leave(request);
  if (!left.ok()) LOG(WARNING) << "leave: " << left.message();
}

absl::Status PsPeers::Connect(ParameterStore& store) {
  if (HasEnded(session_->state())) return absl::OkStatus();
  const int64_t version = session_->state().placement_version();
  const absl::StatusOr<wire::GetPlacementResponse> placement = AwaitPlacement(
      *session_, options_.peer_timeout, [this] { return IsStopping(); });
  if (HasEnded(session_->state())) return absl::OkStatus();
  RETURN_IF_ERROR(placement.status());
  std::vector<std::string> names;
  for (const VariableSpec& spec : store.variables().specs()) {
    names.push_back(spec.name);
  }
  ParameterClient::Options options;
  options.trace = &inspection_->recorder();
  options.worker_incarnation = options_.task.incarnation();
  options.shard_timeout = options_.peer_timeout;
  options.trust = options_.trust;
  ASSIGN_OR_RETURN(std::unique_ptr<ParameterClient> client,
                   ParameterClient::Create(*placement, std::move(names), {},
                                           options, clock_, registry_));
  {
    absl::MutexLock lock(&mu_);
    parameters_ = std::move(client);
    ChiefStepSource::Options claims;
    claims.task = options_.task;
    steps_ =
        ChiefStepSource::Create(std::move(claims), session_->chief(), clock_);
    if (stopping_ || !lost_.ok()) steps_->Stop();
    if (!lost_.ok()) parameters_->Stop();
  }
  follower_ = std::make_unique<PlacementFollower>(
      PlacementFollower::Options{
          .known_version = version,
          .on_complete = [this] { OnComplete(); },
          .on_lost = [this](absl::Status why) { OnLost(std::move(why)); },
          .on_placement =
              [this](const wire::GetPlacementResponse& moved) {
                return parameters_->Update(moved);
              },
          .on_loading =
              [this](absl::Span<const int> shards) {
                parameters_->ShardsAreLoading(shards);
              },
          .is_away = [this] { return parameters_->Unanswered().is_cut; }},
      *session_, clock_);
  return PullAll(store);
}

absl::Status PsPeers::PullAll(ParameterStore& store) {
  StoredVariables& variables = store.variables();
  std::vector<std::vector<float>> values;
  std::vector<TrainingParameters::Target> targets;
  for (const VariableSpec& spec : variables.specs()) {
    values.emplace_back(spec.elements());
  }
  for (size_t i = 0; i < values.size(); ++i) {
    targets.push_back({.variable = i, .values = absl::MakeSpan(values[i])});
  }
  TrainingParameters& parameters = *parameters_;
  RETURN_IF_ERROR(parameters.Pull(std::move(targets))->Wait());
  for (size_t i = 0; i < values.size(); ++i) {
    RETURN_IF_ERROR(variables.Write(i, kValueArray, values[i]));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<int64_t>> PsPeers::NextIteration(int64_t) {
  if (end() != begun_end_ && begun_end_ != kEndless) {
    return absl::FailedPreconditionError(
        absl::StrCat("a Training of ", end(),
                     local_steps() == nullptr ? " iterations" : " exchanges",
                     " behind one of ", begun_end_,
                     ": under parameter_server a program has one"));
  }
  if (is_over_) return std::nullopt;
  ChiefStepSource* steps = nullptr;
  {
    absl::MutexLock lock(&mu_);
    steps = steps_.get();
  }
  const absl::StatusOr<std::optional<int64_t>> next = [&] {
    const InnerPart wait(&reporter_, StepPart::kWait);
    return steps->Start();
  }();
  // Claims may hear that the job is complete before heartbeats do.
  const bool is_complete = next.ok() && !next->has_value();
  if (is_complete || session_->state().phase() == wire::COMPLETE) {
    TakeLastValues();
    return std::nullopt;
  }
  if (absl::IsFailedPrecondition(next.status())) {
    return WhyRefused(*session_, next.status(), clock_,
                      [this] { return IsStopping(); });
  }
  RETURN_IF_ERROR(Why(next.status()));
  if (*next && **next >= end()) return std::nullopt;
  return next;
}

void PsPeers::TakeLastValues() {
  is_over_ = true;
  const std::string& directory = options_.settings.checkpoint_directory;
  const auto restore = [&]() -> absl::Status {
    const CheckpointStore checkpoints(directory);
    ASSIGN_OR_RETURN(const std::optional<int64_t> newest,
                     checkpoints.NewestComplete());
    if (!newest) return absl::NotFoundError("there is no checkpoint");
    ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> reader,
                     CheckpointReader::Open(checkpoints.PathOf(*newest)));
    return store_->Restore(*reader);
  };
  const absl::Status restored =
      directory.empty() ? absl::NotFoundError("--checkpoint_dir is not set")
                        : restore();
  if (restored.ok()) return;
  LOG(WARNING) << "this worker goes on with the values that it pulled last: "
               << restored.message();
}

absl::StatusOr<bool> PsPeers::Commit(const Iteration& iteration,
                                     ParameterStore&) {
  metrics_.steps.Add();
  if (iteration.examples > 0) {
    const auto examples = static_cast<double>(iteration.examples);
    metrics_.examples.Add(examples);
    metrics_.loss.Set(iteration.loss_sum / examples);
  }
  ReportIteration(iteration, reporter_);
  recorded_.Show(iteration.values);
  absl::MutexLock lock(&mu_);
  RETURN_IF_ERROR(lost_);
  steps_->Complete();
  return !stopping_;
}

absl::StatusOr<bool> PsPeers::GoesOn() {
  absl::MutexLock lock(&mu_);
  RETURN_IF_ERROR(lost_);
  return !stopping_;
}

absl::Status PsPeers::End(const absl::Status& result) {
  if (session_ == nullptr) return result;
  // Others may have done the last iterations while this worker stood still.
  const bool is_complete = session_->state().phase() == wire::COMPLETE;
  const absl::Status end = is_complete ? absl::OkStatus() : Why(result);
  int64_t completed = 0;
  {
    absl::MutexLock lock(&mu_);
    if (steps_ != nullptr) completed = steps_->completed_steps();
  }
  if (!end.ok()) ReportError(end);
  Disconnect();
  session_->Stop();
  const bool has_ended = ReportTheRest();
  // One that does not end well is expected to come back, to a job that goes on.
  if (end.ok() || has_ended) {
    session_->Leave(completed);
  }
  return end;
}

// A program that ends by itself leaves at once.
bool PsPeers::ReportTheRest() {
  wire::HeartbeatRequest request;
  *request.mutable_task() = options_.task;
  Report(request);
  // A chief that is gone needs none.
  const auto answer = session_->chief().Heartbeat(request);
  return HasEnded(answer.ok() ? *answer : session_->state());
}

void PsPeers::Disconnect() {
  if (parameters_ != nullptr) parameters_->Stop();
  follower_.reset();
  std::unique_ptr<ChiefStepSource> steps;
  {
    absl::MutexLock lock(&mu_);
    steps = std::move(steps_);
  }
  steps.reset();  // joins its thread
}

void PsPeers::Stop() {
  absl::MutexLock lock(&mu_);
  stopping_ = true;
  if (steps_ != nullptr) steps_->Stop();
}

void PsPeers::OnLost(absl::Status why) {
  absl::MutexLock lock(&mu_);
  if (lost_.ok()) lost_ = std::move(why);
  if (steps_ != nullptr) steps_->Stop();
  if (parameters_ != nullptr) parameters_->Stop();
}

void PsPeers::OnComplete() {
  absl::MutexLock lock(&mu_);
  if (steps_ != nullptr) steps_->Stop();
  if (parameters_ != nullptr) parameters_->Stop();
}

void PsPeers::Report(wire::HeartbeatRequest& request) {
  ReportTraining(reporter_.Take(), reported_, request);
}

bool PsPeers::IsStopping() const {
  absl::MutexLock lock(&mu_);
  return stopping_;
}

absl::Status PsPeers::Why(const absl::Status& status) const {
  absl::MutexLock lock(&mu_);
  if (status.ok() || lost_.ok()) return status;
  return lost_;
}

void PsPeers::ReportError(const absl::Status& failure) {
  if (absl::IsCancelled(failure) || absl::IsUnavailable(failure) ||
      HasEnded(session_->state())) {
    return;
  }
  parasol::ReportFailure(session_->chief(), options_.task, failure,
                         /*has_begun=*/parameters_ != nullptr,
                         [this](absl::Duration time) { clock_.Pause(time); });
}

}  // namespace parasol
