#include "worker/lone_chief.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/log_fields.h"
#include "base/status_macros.h"
#include "cluster/checkpoint/checkpoint_contents.h"
#include "cluster/checkpoint/checkpoint_failure.h"
#include "cluster/checkpoint/disk_patience.h"
#include "cluster/client/ps_client.h"
#include "cluster/client/task_identity.h"
#include "cluster/job/learning_rate_field.h"
#include "coordinator/taken_run.h"
#include "coordinator/watch/findings.h"
#include "google/protobuf/util/message_differencer.h"
#include "storage/shard_writer.h"

namespace parasol {
namespace {

using ::google::protobuf::util::MessageDifferencer;

// Number of batches that the loop is told in advance.
constexpr size_t kUpcoming = 32;
// Time after which something that has to wait is looked at again.
constexpr absl::Duration kPause = absl::Milliseconds(100);
// The layout of the only shard, which has no other.
constexpr uint64_t kLayout = 1;

// The only shard, as a client of a ps.
class ShardHere : public PsClient {
 public:
  // `completed`: the steps that the shard has had. All must outlive it.
  ShardHere(const job::Optimizer& optimizer, LoneShard& shard,
            const int64_t& completed)
      : optimizer_(optimizer), shard_(shard), completed_(completed) {}

  absl::StatusOr<wire::LoadResponse> Load(
      const wire::LoadRequest& request) override {
    std::optional<double> rate;
    if (!MessageDifferencer::Equals(request.optimizer(), optimizer_)) {
      rate = InitialLearningRate(request.optimizer());
    }
    RETURN_IF_ERROR(shard_.Load(request.checkpoint(), rate));
    return wire::LoadResponse();
  }
  absl::StatusOr<wire::PrepareSnapshotResponse> PrepareSnapshot(
      const wire::PrepareSnapshotRequest&) override {
    wire::PrepareSnapshotResponse response;
    response.set_min_updates(completed_);
    response.set_max_updates(completed_);
    return response;
  }
  absl::StatusOr<wire::SnapshotResponse> Snapshot(
      const wire::SnapshotRequest& request) override {
    ASSIGN_OR_RETURN(const std::unique_ptr<ShardWriter> writer,
                     ShardWriter::Create(CheckpointStore::PathInWorking(
                         request.directory(), request.file_name())));
    writer->SetWriter({.shard = 0, .num_shards = 1});
    RETURN_IF_ERROR(shard_.Save(*writer));
    ASSIGN_OR_RETURN(const durable::CheckpointFile file, writer->Finish());
    wire::SnapshotResponse response;
    response.set_bytes(file.bytes());
    response.set_crc32c(file.crc32c());
    return response;
  }
  void MoveTo(const std::string&, std::optional<int>) override {}
  void CancelCalls() override {}  // none waits for anybody

 private:
  const job::Optimizer& optimizer_;
  LoneShard& shard_;
  const int64_t& completed_;
};

// Returns the job as the coordinator has it: its mode is the training's.
job::Job JobOf(const job::Job& job, const LoneShard& shard) {
  job::Job of_cluster = job;
  of_cluster.clear_strategy();
  of_cluster.clear_parameter_server();
  const int replicas = shard.replicas_in_step();
  if (replicas > 0) {
    job::Synchronous& mode =
        *of_cluster.mutable_parameter_server()->mutable_synchronous();
    mode.set_total_replicas(replicas);
    mode.set_replicas_to_aggregate(replicas);
  }
  return of_cluster;
}

wire::Task NewTaskAt(const std::string& role) {
  wire::Task task;
  task.set_role(role);
  task.set_incarnation(NewIncarnation());
  return task;
}

// Removes the ps that the worker is to the coordinator, and what follows from
// the time since the worker's last report: who answers is there.
void KeepWorker(wire::JobStatus& status) {
  auto& tasks = *status.mutable_task();
  tasks.erase(std::remove_if(tasks.begin(), tasks.end(),
                             [](const wire::TaskStatus& task) {
                               return task.task().role() != "worker";
                             }),
              tasks.end());
  for (wire::TaskStatus& task : tasks) {
    task.clear_silence();
    task.clear_slow();
  }
}

}  // namespace

LoneChief::LoneChief(Options options, const LoneShard& shard, Clock& clock)
    : options_(std::move(options)),
      is_in_step_(shard.replicas_in_step() > 0),
      clock_(clock),
      worker_(NewTaskAt("worker")),
      keeper_(NewTaskAt("ps")) {}

absl::StatusOr<std::unique_ptr<LoneChief>> LoneChief::Start(Options options,
                                                            LoneShard& shard,
                                                            Clock& clock) {
  std::unique_ptr<LoneChief> chief(
      new LoneChief(std::move(options), shard, clock));
  const job::Job& job = chief->options_.job;
  CoordinatorOptions& run = chief->run_;
  run.job = job;
  run.shards.emplace_back();  // of ps/0
  run.layout = kLayout;
  run.tasks = {{TaskId::Of(chief->worker_), ""},
               {TaskId::Of(chief->keeper_), ""}};
  run.is_mirrored = true;
  run.checkpoint_timeout = chief->options_.checkpoint_timeout;
  if (chief->options_.contents) {
    run.contents = *chief->options_.contents;
  } else {
    ASSIGN_OR_RETURN(run.contents, ContentsOf(chief->options_.variables, job));
  }
  // The owner's lease is real time, whatever the training's clock.
  ASSIGN_OR_RETURN(TakenRun taken,
                   TakeRun({.directory = job.checkpoint().directory(),
                            .variables = chief->options_.variables,
                            .full_limit = chief->options_.checkpoint_timeout,
                            .cancelled = chief->options_.is_stopping,
                            .on_trouble = chief->options_.on_trouble},
                           clock, Clock::Real(), run));
  chief->options_.on_trouble("");
  chief->ownership_ = std::move(taken.ownership);
  if (chief->options_.ends_when_told && run.already_complete) {
    run.already_complete = run.resumed->global_step() >= job.end().steps();
  }
  run.job = JobOf(job, shard);
  std::vector<std::unique_ptr<PsClient>> shards;
  shards.push_back(
      std::make_unique<ShardHere>(job.optimizer(), shard, chief->completed_));
  chief->executor_ = std::make_unique<OrderExecutor>(
      run, std::move(shards), std::move(taken.store),
      OrderExecutor::Directory{
          .check_owner = [owner = chief->ownership_.get()] {
            return owner->Check();
          }});
  RETURN_IF_ERROR(chief->Register(shard));
  return chief;
}

absl::Status LoneChief::Register(const LoneShard& shard) {
  completed_ = run_.resumed ? run_.resumed->global_step() : 0;
  *claim_.mutable_task() = worker_;
  claim_.set_train_examples(shard.train_examples());
  ASSIGN_OR_RETURN(const std::vector<int64_t> examples, shard.ShardExamples());
  claim_.mutable_shard_examples()->Assign(examples.begin(), examples.end());
  absl::MutexLock lock(&mu_);
  coordinator_.emplace(run_, clock_.Now());
  for (const wire::Task& task : {worker_, keeper_}) {
    wire::RegisterRequest request;
    *request.mutable_task() = task;
    RETURN_IF_ERROR(coordinator_->Register(request, clock_.Now()).status());
  }
  Claim(/*want=*/0);
  return failure_;
}

void LoneChief::Claim(int64_t want) {
  bool again = true;
  while (again) {
    if (is_in_step_) {
      claim_.set_completed_steps(completed_);
      claim_.set_pushed_steps(completed_);
    } else {
      steps_.Tell(claim_);
    }
    claim_.set_want(want);
    const absl::StatusOr<wire::ClaimStepsResponse> answer =
        coordinator_->ClaimSteps(claim_, clock_.Now());
    if (!answer.ok()) {
      failure_ = answer.status();
      return;
    }
    end_step_ = answer->phase() == wire::TRAINING ? answer->end_step() : 0;
    claim_.set_assignment_version(answer->assignment_version());
    again = !is_in_step_ && steps_.Take(*answer) && want > 0;
  }
}

void LoneChief::Complete(int64_t completed) {
  absl::MutexLock lock(&mu_);
  for (; completed_ < completed; ++completed_) {
    if (!is_in_step_) steps_.Complete();
  }
  Claim(/*want=*/0);
}

wire::WorkerTotals LoneChief::Report(const TrainingReport& report) {
  absl::MutexLock lock(&mu_);
  const absl::Time now = clock_.Now();
  wire::HeartbeatRequest of_worker;
  *of_worker.mutable_task() = worker_;
  ReportTraining(report, total_, of_worker);
  wire::HeartbeatRequest of_keeper;
  *of_keeper.mutable_task() = keeper_;
  if (is_loaded_) {
    of_keeper.set_run_id(run_.run_id);
    of_keeper.set_layout(run_.layout);
  }
  for (const wire::HeartbeatRequest& request : {of_worker, of_keeper}) {
    // The worker has left a run that it was told to stop.
    coordinator_->Heartbeat(request, now).status().IgnoreError();
  }
  for (const std::string& line : coordinator_->Tick(now).warnings) {
    LOG(WARNING) << line;
  }
  return of_worker.totals();
}

std::optional<int64_t> LoneChief::StartStep() {
  absl::MutexLock lock(&mu_);
  if (options_.is_stopping() || !failure_.ok()) return std::nullopt;
  const absl::Time now = clock_.Now();
  if (coordinator_->NewsAt(now).may_have_order) {
    order_ = coordinator_->NextOrder(now);
    if (order_) return std::nullopt;
  }
  if (is_in_step_) {
    return completed_ < end_step_ ? std::optional<int64_t>(completed_)
                                  : std::nullopt;
  }
  Claim(/*want=*/1);
  return steps_.TryStart();
}

std::vector<int64_t> LoneChief::Upcoming() const {
  return steps_.Upcoming(kUpcoming);
}

std::optional<Order> LoneChief::NextOrder() {
  if (order_) return std::exchange(order_, std::nullopt);
  absl::MutexLock lock(&mu_);
  return coordinator_->NextOrder(clock_.Now());
}

absl::Status LoneChief::CarryOut(const LoadOrder& order) {
  const absl::Status result = executor_->Load(order).front();
  absl::MutexLock lock(&mu_);
  coordinator_->Done(LoadResult{order.targets.front(), result}, clock_.Now());
  const bool had_values = std::exchange(is_loaded_, result.ok());
  if (result.ok()) return result;
  LOG(WARNING) << "load: " << result.message();
  // The coordinator has it tried again, unless it takes the values to be there.
  return had_values || !MayPass(result) ? result : absl::OkStatus();
}

absl::Status LoneChief::Write(const CheckpointOrder& order) {
  CheckpointOrder of_job = order;
  *of_job.manifest.mutable_job() = options_.job;
  const absl::StatusOr<int64_t> written =
      executor_->WriteCheckpoint(of_job, clock_.Now(), [this] {
        absl::MutexLock lock(&mu_);
        return coordinator_->Kept();
      });
  if (written.ok()) {
    LOG(INFO) << "checkpoint " << store().PathOf(completed_)
              << LogFields().AddCount("step", completed_);
    return absl::OkStatus();
  }
  const absl::Status& why = written.status();
  LOG(WARNING) << "no checkpoint of step " << completed_ << ": "
               << why.message();
  const absl::Status owner = ownership_->Check();
  if (absl::IsFailedPrecondition(owner)) {
    failure_ = owner;
  } else if (stop_requested_) {
    failure_ = EndWithoutCheckpoint(completed_, absl::ZeroDuration(), why);
  }
  return why;
}

void LoneChief::Done(const CheckpointOrder& order, const absl::Status& result) {
  absl::MutexLock lock(&mu_);
  coordinator_->Done(CheckpointResult{order, result}, clock_.Now());
}

void LoneChief::Evaluated(const std::vector<Evaluation>& evaluations) {
  absl::MutexLock lock(&mu_);
  for (const std::string& line :
       coordinator_->Evaluated(evaluations, clock_.Now())) {
    LOG(INFO) << line;
  }
}

void LoneChief::Leave(const wire::Task& task) {
  wire::LeaveRequest request;
  *request.mutable_task() = task;
  if (task.role() == "worker") {
    request.set_completed_steps(claim_.completed_steps());
  }
  // It may have left before.
  coordinator_->Leave(request, clock_.Now()).IgnoreError();
}

void LoneChief::End() {
  absl::MutexLock lock(&mu_);
  coordinator_->RequestEnd(clock_.Now());
  Claim(/*want=*/0);
}

std::optional<absl::Status> LoneChief::Outcome() {
  absl::MutexLock lock(&mu_);
  if (!failure_.ok()) return failure_;
  const absl::Time now = clock_.Now();
  const wire::JobPhase phase = coordinator_->Status(now).phase();
  if (options_.is_stopping() && !std::exchange(stop_requested_, true)) {
    coordinator_->RequestStop(now);
    // What it has done is known: nothing more is awaited.
    Leave(worker_);
  }
  if (phase == wire::COMPLETE || phase == wire::FAILED) {
    Leave(worker_);
    Leave(keeper_);
  }
  return coordinator_->Outcome(now);
}

void LoneChief::Pause() {
  if (order_) return;
  Report({});
  const bool never = false;
  absl::MutexLock lock(&mu_);
  clock_.AwaitWithTimeout(mu_, absl::Condition(&never), kPause);
}

wire::JobStatus LoneChief::Status() const {
  absl::MutexLock lock(&mu_);
  const absl::Time now = clock_.Now();
  wire::JobStatus status = coordinator_->Status(now);
  const std::optional<int64_t> newest =
      coordinator_->NewsAt(now).newest_checkpoint;
  if (newest) status.set_checkpoint(store().PathOf(*newest));
  KeepWorker(status);
  AddFindings(status);
  return status;
}

}  // namespace parasol
