#include "worker/local_training.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/log.h"
#include "base/log_fields.h"
#include "base/status_macros.h"
#include "cluster/checkpoint/checkpoint_failure.h"
#include "cluster/checkpoint/disk_patience.h"
#include "cluster/checkpoint/store_checkpoint.h"
#include "cluster/checkpoint/warm_start.h"
#include "cluster/job/learning_rate_field.h"
#include "cluster/job/training_end.h"
#include "ml/input/feature/model_inputs.h"
#include "ml/loss/loss_spec.h"
#include "ml/model/device_training.h"
#include "ml/model/graph_inputs.h"
#include "storage/checkpoint_reader.h"
#include "storage/shard_writer.h"
#include "worker/clipped_model.h"
#include "worker/local/micro_batch_model.h"
#include "worker/local/updating_model.h"
#include "worker/step/step_source.h"
#include "worker/training_loop.h"
#include "worker/training_report.h"
#include "worker/worker_device.h"

namespace parasol {
namespace {

constexpr char kShardFile[] = "worker-0.sst";

// Number of batches that the loop is told in advance.
constexpr int64_t kUpcoming = 32;

// Grants one step after the other, until `is_over` says, given the number of
// completed ones, that there are no more. A step's batch has its number.
class CountedSteps : public StepSource {
 public:
  CountedSteps(int64_t completed, std::function<bool(int64_t)> is_over)
      : completed_(completed), is_over_(std::move(is_over)) {}

  absl::StatusOr<std::optional<int64_t>> Start() override {
    if (is_over_(completed_)) return std::nullopt;
    return completed_;  // without overlap, no other step is started
  }
  std::vector<int64_t> Upcoming() override {
    std::vector<int64_t> batches;
    for (int64_t i = 1; i < kUpcoming; ++i) batches.push_back(completed_ + i);
    return batches;
  }
  bool CanStartNow() override { return true; }
  void Complete() override { ++completed_; }
  void Stop() override {}

  int64_t completed() const { return completed_; }

 private:
  int64_t completed_;
  const std::function<bool(int64_t)> is_over_;
};

job::Job WithRate(const job::Job& job, std::optional<double> rate) {
  job::Job with_rate = job;
  if (rate) SetInitialLearningRate(*rate, *with_rate.mutable_optimizer());
  return with_rate;
}

// What the log says of cached tables: nothing where there is none.
std::string DescribeUse(const DeviceTables::CacheUse& cache) {
  if (cache.rows == 0) return "";
  const int64_t hits = cache.rows - cache.misses;
  return absl::StrFormat(
      ", %.1f %% of the rows of cached tables were there",
      100.0 * static_cast<double>(hits) / static_cast<double>(cache.rows));
}

}  // namespace

LocalTraining::LocalTraining(Options options, Clock& clock,
                             MetricsRegistry& metrics)
    : options_(std::move(options)),
      composition_(Compose(options_.job, {.devices = NumReplicas()})),
      clock_(clock),
      metrics_(metrics) {}

void LocalTraining::Stop() {
  absl::MutexLock lock(&mu_);
  stopping_ = true;
}

bool LocalTraining::stopping() const {
  absl::MutexLock lock(&mu_);
  return stopping_;
}

absl::Status LocalTraining::Run() {
  const auto set_phase = [this](wire::JobPhase phase) {
    status().Update([phase](wire::JobStatus& now) { now.set_phase(phase); });
  };
  set_phase(wire::LOADING);
  RETURN_IF_ERROR(Prepare());
  RETURN_IF_ERROR(Resume());
  NoteResumed();
  if (!run_.is_complete) {
    set_phase(wire::TRAINING);
    RETURN_IF_ERROR(Train());
  }
  if (stopping()) {
    return absl::CancelledError(absl::StrCat("stopped at step ", step_));
  }
  set_phase(wire::FINISHING);
  RETURN_IF_ERROR(Evaluate(/*final=*/true));
  set_phase(wire::COMPLETE);
  return absl::OkStatus();
}

absl::Status LocalTraining::Prepare() {
  const job::Job& job = options_.job;
  RETURN_IF_ERROR(CheckLossCode(options_.graph.outputs));
  InputOptions input;
  input.data_dir = options_.data_dir;
  input.seed = job.seed();
  // Replicas in step open it again.
  input.by_number = !composition_.in_step;
  ASSIGN_OR_RETURN(const ModelInputs inputs,
                   TrainingInputsOf(job.model(), options_.graph));
  ASSIGN_OR_RETURN(input_, InputPipeline::Open(job.train(), inputs, input));
  RETURN_IF_ERROR(OpenReplicas());
  if (job.has_eval()) {
    ASSIGN_OR_RETURN(evaluation_,
                     ModelEvaluation::Open(job.model(), options_.graph,
                                           job.eval(), options_.data_dir));
  }
  return MakeParameters();
}

absl::Status LocalTraining::OpenReplicas() {
  const job::Job& job = options_.job;
  const LocalReplicas& replicas = options_.replicas;
  std::string devices;
  if (composition_.in_step) {
    ASSIGN_OR_RETURN(replicas_,
                     ReplicaThreads::Create({.job = job,
                                             .graph = options_.graph,
                                             .devices = replicas.devices,
                                             .threads = options_.threads},
                                            *input_, clock_, metrics_));
    devices = replicas_->Describe();
  } else {
    ASSIGN_OR_RETURN(device_, OpenDevice(replicas.devices.front(),
                                         options_.threads, job.worker()));
    RETURN_IF_ERROR(MakeModel());
    devices = device_->name();
  }
  LOG(INFO) << "strategy " << StrategyName(replicas.strategy) << ": "
            << NumReplicas() << (NumReplicas() == 1 ? " replica" : " replicas")
            << " in sync, each with a batch of " << job.train().batch_size()
            << ", on " << devices;
  return absl::OkStatus();
}

// What is left of the gradients for ClipGradients() are those of tables on the
// host, if any.
absl::Status LocalTraining::MakeModel() {
  const job::Job& job = options_.job;
  ASSIGN_OR_RETURN(std::unique_ptr<Model> model,
                   Model::Create(options_.graph, *device_));
  DeviceTraining* const training = model->device_training();
  const Composition composition =
      Compose(job, {.updating_devices = training == nullptr ? 0 : 1});
  if (composition.store == Store::kDevices) {
    const job::Job with_rate = WithRate(job, rate_);
    ASSIGN_OR_RETURN(
        variables_, DeviceVariables::Create(options_.graph.variables, with_rate,
                                            *training, *device_));
    if (job.model().sparse_table_size() > 0) {
      ASSIGN_OR_RETURN(tables_, DeviceTables::Create(with_rate, *device_));
    }
    model = UpdateOnDevice(std::move(model), *variables_, tables_.get());
  }
  model_ = ClipGradients(SplitBatches(std::move(model), *device_, job), job);
  return absl::OkStatus();
}

absl::Status LocalTraining::UseReducedRate() {
  if (rate_ == decisions_->learning_rate()) return absl::OkStatus();
  rate_ = decisions_->learning_rate();
  parameters_.reset();
  if (variables_ != nullptr) {
    // There may not be memory for both.
    model_.reset();
    tables_.reset();
    variables_.reset();
    RETURN_IF_ERROR(MakeModel());
  } else if (VariablesOnDevice() != nullptr) {
    RETURN_IF_ERROR(replicas_->UseOptimizers(WithRate(options_.job, rate_)));
  }
  return MakeParameters();
}

LocalVariables* LocalTraining::VariablesOnDevice() {
  return replicas_ == nullptr ? variables_.get() : replicas_->variables();
}

absl::Status LocalTraining::MakeParameters() {
  const job::Job job = WithRate(options_.job, rate_);
  LocalVariables* const on_device = VariablesOnDevice();
  ASSIGN_OR_RETURN(
      parameters_,
      on_device == nullptr
          ? LocalParameters::Create(model().variables(), job)
          : LocalParameters::Create(*on_device, job, tables_.get()));
  return absl::OkStatus();
}

absl::Status LocalTraining::Resume() {
  const auto tell = [this](absl::string_view trouble) {
    status().Update([trouble](wire::JobStatus& now) {
      now.set_trouble(std::string(trouble));
    });
  };
  DiskPatience patience({.full_limit = options_.checkpoint_timeout,
                         .cancelled = [this] { return stopping(); },
                         .on_trouble = tell},
                        clock_);
  while (true) {
    const absl::Status resumed = TryResume();
    if (resumed.ok()) break;
    if (absl::IsDataLoss(resumed) && run_.checkpoint &&
        damaged_.insert(run_.checkpoint->global_step()).second) {
      LOG(WARNING) << "passing over a damaged checkpoint: "
                   << resumed.message();
    } else {
      RETURN_IF_ERROR(patience.Failed(resumed));
    }
    // A part may have been restored.
    RETURN_IF_ERROR(MakeParameters());
  }
  tell("");
  schedule_.emplace(
      options_.job.checkpoint(),
      run_.checkpoint ? std::optional<int64_t>(step_) : std::nullopt,
      clock_.Now());
  job::CheckpointPolicy times;
  times.set_every_steps(options_.job.evaluation().every_steps());
  times.set_every_seconds(options_.job.evaluation().every_seconds());
  evaluation_times_.emplace(times, schedule_->newest_step(), clock_.Now());
  return absl::OkStatus();
}

absl::Status LocalTraining::TryResume() {
  const std::string& directory = options_.job.checkpoint().directory();
  if (ownership_ == nullptr) {
    // The owner's lease is real time, whatever the training's clock.
    ASSIGN_OR_RETURN(
        ownership_,
        DirectoryOwnership::Take({.directory = directory,
                                  .job_name = options_.job.name(),
                                  .cancelled = [this] { return stopping(); }},
                                 Clock::Real()));
  }
  ASSIGN_OR_RETURN(store_, CheckpointStore::OpenForWriting(directory));
  ASSIGN_OR_RETURN(run_, ResumeRun(*store_, options_.job,
                                   parameters_->contents(), damaged_));
  if (!run_.checkpoint && options_.job.has_warm_start()) {
    RETURN_IF_ERROR(WriteWarmStart({.run_id = run_.run_id,
                                    .job = options_.job,
                                    .variables = options_.graph.variables,
                                    .contents = parameters_->contents(),
                                    .now = clock_.Now()},
                                   *store_,
                                   [this] { return ownership_->Check(); }));
    ASSIGN_OR_RETURN(run_,
                     ResumeRun(*store_, options_.job, parameters_->contents()));
  }
  step_ = run_.checkpoint ? run_.checkpoint->global_step() : 0;
  RETURN_IF_ERROR(ReadDecisions());
  return run_.checkpoint ? Restore() : absl::OkStatus();
}

absl::Status LocalTraining::Restore() {
  const std::string path = store_->PathOf(step_);
  ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> checkpoint,
                   CheckpointReader::Open(path));
  RETURN_IF_ERROR(parameters_->Restore(*checkpoint)) << path;
  return absl::OkStatus();
}

absl::StatusOr<int64_t> LocalTraining::EndStep() {
  job::Job alone = options_.job;
  alone.clear_parameter_server();
  std::vector<int64_t> shards;
  if (composition_.in_step) {
    alone.mutable_parameter_server()->mutable_synchronous()->set_total_replicas(
        NumReplicas());
    ASSIGN_OR_RETURN(shards, input_->ShardSizes(NumReplicas()));
  }
  TrainingEnd end(alone);
  RETURN_IF_ERROR(end.ObserveExamples(input_->total_examples(), shards));
  steps_per_epoch_ = end.steps_per_epoch().value_or(0);
  return end.step().value_or(INT64_MAX);
}

absl::Status LocalTraining::Train() {
  ASSIGN_OR_RETURN(const int64_t end, EndStep());
  status().Update([&](wire::JobStatus& now) {
    now.set_end_step(end == INT64_MAX ? 0 : end);
    now.set_steps_per_epoch(steps_per_epoch_);
  });
  OpenJournal();
  // So that there always is one to come back to.
  if (!schedule_->newest_step()) {
    RETURN_IF_ERROR(WriteNeededCheckpoint(/*final=*/false));
  }
  while (step_ < end && !stopping()) {
    RETURN_IF_ERROR(WriteAndEvaluateWhatIsDue());
    if (decisions_->stop()) break;
    RETURN_IF_ERROR(TrainUntilDue(end));
  }
  TrainingReporter nothing_more(clock_);
  NoteProgress(step_, end, nothing_more, /*is_end=*/true);
  const bool is_complete = step_ >= end || (decisions_->stop() && !stopping());
  if (!is_complete && schedule_->newest_step() == step_) {
    return absl::OkStatus();
  }
  return WriteNeededCheckpoint(/*final=*/is_complete);
}

absl::Status LocalTraining::WriteAndEvaluateWhatIsDue() {
  const bool is_evaluation_time =
      evaluation_times_->IsDue(step_, clock_.Now()) &&
      schedule_->MayTry(clock_.Now());
  if (!schedule_->IsDue(step_, clock_.Now()) && !is_evaluation_time) {
    return absl::OkStatus();
  }
  const bool is_evaluation_due = IsEvaluationDue();
  // The last attempt's failure is no reason to end: it was logged. A new owner
  // is.
  if (!TryCheckpoint(/*final=*/false).ok()) {
    schedule_->Failed(clock_.Now());
    const absl::Status owner = ownership_->Check();
    return absl::IsFailedPrecondition(owner) ? owner : absl::OkStatus();
  }
  return is_evaluation_due ? Evaluate(/*final=*/false) : absl::OkStatus();
}

absl::StatusOr<int64_t> LocalTraining::TrainAlone(
    std::function<bool(int64_t)> is_over, TrainingReporter& reporter) {
  TrainingLoop::Options loop_options;
  loop_options.overlap = false;  // nothing is in flight here
  loop_options.non_finite_loss = options_.job.worker().non_finite_loss();
  loop_options.seed = options_.job.seed();
  loop_options.first_pass = step_;
  loop_options.counted_corrupt_records = metrics_.corrupt_records.value();
  CountedSteps steps(step_, std::move(is_over));
  TrainingLoop loop(loop_options, *model_, *input_, *parameters_, steps, clock_,
                    metrics_, reporter);
  RETURN_IF_ERROR(loop.Run());
  return steps.completed();
}

absl::Status LocalTraining::TrainUntilDue(int64_t end) {
  TrainingReporter reporter(clock_);
  const auto is_over = [&](int64_t completed) {
    const absl::Time now = clock_.Now();
    status().NoteStep(completed, ExamplesOfAStep(), now);
    if (progress_->IsDue(completed, steps_per_epoch_, now)) {
      NoteProgress(completed, end, reporter, /*is_end=*/false);
    }
    return completed >= end || stopping() || schedule_->IsDue(completed, now) ||
           (schedule_->MayTry(now) && evaluation_times_->IsDue(completed, now));
  };
  ASSIGN_OR_RETURN(
      step_, replicas_ == nullptr
                 ? TrainAlone(is_over, reporter)
                 : replicas_->Train(step_, is_over, *parameters_, reporter));
  status().Pause();
  NoteProgress(step_, end, reporter, /*is_end=*/false);
  const TrainingReport report = std::exchange(since_line_, {});
  const DeviceTables::CacheUse cache = std::exchange(cache_since_line_, {});
  if (report.steps == 0) return absl::OkStatus();  // stopped before the first
  ShowWaitRatio(report.times, metrics_.wait_ratio);
  const double loss = report.loss_sum / static_cast<double>(std::max<int64_t>(
                                            report.examples, 1));
  const double speed = static_cast<double>(report.examples) /
                       absl::ToDoubleSeconds(report.elapsed);
  LogFields fields;
  fields.AddCount("step", step_);
  if (end != INT64_MAX) fields.AddCount("end_step", end);
  fields.AddNumber("loss", loss).AddNumber("examples_per_second", speed);
  LOG(INFO) << "step " << step_ << " of " << end << ", loss " << loss << ", "
            << speed << " examples/s" << DescribeUse(cache) << fields;
  return absl::OkStatus();
}

absl::Status LocalTraining::TryCheckpoint(bool final) {
  durable::CheckpointManifest manifest;
  manifest.set_global_step(step_);
  manifest.set_run_id(run_.run_id);
  History().AddTo(manifest);
  *manifest.mutable_job() = options_.job;
  parameters_->contents().AddTo(manifest);
  manifest.set_final(final);
  const bool is_evaluation_due = evaluation_times_->IsDue(step_, clock_.Now());
  manifest.set_evaluation_due(is_evaluation_due);
  manifest.set_reduced_learning_rate(rate_.value_or(0));
  manifest.set_created_unix_micros(absl::ToUnixMicros(clock_.Now()));
  const auto save = [this](const std::string& directory,
                           durable::CheckpointManifest& files) -> absl::Status {
    ASSIGN_OR_RETURN(
        const std::unique_ptr<ShardWriter> writer,
        ShardWriter::Create(absl::StrCat(directory, "/", kShardFile)));
    RETURN_IF_ERROR(parameters_->Save(*writer));
    ASSIGN_OR_RETURN(*files.add_file(), writer->Finish());
    return absl::OkStatus();
  };
  const absl::Status status = StoreCheckpoint(
      *store_, std::move(manifest), options_.job.checkpoint().max_to_keep(),
      save, [this] { return ownership_->Check(); },
      [this] {
        return KeptCheckpoints{.best_first = decisions_->best_first()};
      });
  if (status.ok()) {
    LOG(INFO) << "checkpoint " << store_->PathOf(step_)
              << LogFields().AddCount("step", step_);
    this->status().Update([this](wire::JobStatus& now) {
      now.set_checkpoint(store_->PathOf(step_));
      now.clear_trouble();
    });
    schedule_->Written(step_, clock_.Now());
    if (is_evaluation_due) evaluation_times_->Written(step_, clock_.Now());
  } else {
    LOG(WARNING) << "no checkpoint of step " << step_ << ": "
                 << status.message();
    this->status().Update([&](wire::JobStatus& now) {
      now.set_trouble(absl::StrCat("no checkpoint of step ", step_, ": ",
                                   status.message()));
    });
  }
  return status;
}

absl::Status LocalTraining::WriteNeededCheckpoint(bool final) {
  schedule_->StartOver();
  while (true) {
    const bool is_stopping = stopping();
    const absl::Status status = TryCheckpoint(final);
    if (status.ok()) return status;
    const absl::Status owner = ownership_->Check();
    if (absl::IsFailedPrecondition(owner)) return owner;
    if (is_stopping) {
      return EndWithoutCheckpoint(step_, absl::ZeroDuration(), status);
    }
    const absl::Time now = clock_.Now();
    schedule_->Failed(now, CheckpointSchedule::kMaxAwaitedBackoff);
    const absl::Time give_up =
        schedule_->failing_since() + options_.checkpoint_timeout;
    if (now >= give_up) {
      return EndWithoutCheckpoint(step_, options_.checkpoint_timeout, status);
    }
    absl::MutexLock lock(&mu_);
    clock_.AwaitWithTimeout(mu_, absl::Condition(&stopping_),
                            std::min(schedule_->next_try(), give_up) - now);
  }
}

}  // namespace parasol
