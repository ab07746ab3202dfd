#include "worker/local_training.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "ml/input/feature/model_inputs.h"
#include "ml/metric/metric_results.h"
#include "ml/metric/metrics.h"
#include "storage/checkpoint_reader.h"
#include "storage/checkpoint_store.h"
#include "storage/shard_writer.h"
#include "worker/clipped_model.h"
#include "worker/worker_device.h"

namespace parasol {
namespace {

constexpr char kShardFile[] = "worker-0.sst";
// Without checkpoint.every_steps: progress is logged and Stop() is heard
// between the steps anyway; only the checkpoint waits.
constexpr int64_t kDefaultCheckpointSteps = 10000;

// Counts to a given step, and no further.
class CountedSteps : public StepSource {
 public:
  CountedSteps(int64_t first, int64_t end, const std::atomic<bool>& stopping)
      : next_(first), completed_(first), end_(end), stopping_(stopping) {}

  absl::StatusOr<bool> Start() override {
    if (stopping_ || next_ >= end_) return false;
    ++next_;
    return true;
  }
  bool CanStartNow() override { return true; }
  void Complete() override { ++completed_; }
  void Stop() override {}

  int64_t completed() const { return completed_; }

 private:
  int64_t next_;
  int64_t completed_;
  const int64_t end_;
  const std::atomic<bool>& stopping_;
};

std::string RandomRunId() {
  std::random_device random;
  return absl::StrFormat("%08x%08x", random(), random());
}

}  // namespace

LocalTraining::LocalTraining(Options options, Clock& clock,
                             MetricsRegistry& metrics)
    : options_(std::move(options)), clock_(clock), metrics_(metrics) {}

absl::Status LocalTraining::Run() {
  RETURN_IF_ERROR(Prepare());
  RETURN_IF_ERROR(Resume());
  const int64_t every = options_.job.checkpoint().every_steps() > 0
                            ? options_.job.checkpoint().every_steps()
                            : kDefaultCheckpointSteps;
  RETURN_IF_ERROR(TrainTo(EndStep(), every));
  if (stopping_) return absl::CancelledError("stopped");
  return Evaluate();
}

absl::Status LocalTraining::Prepare() {
  const job::Job& job = options_.job;
  ASSIGN_OR_RETURN(device_,
                   OpenDevice(options_.device, options_.threads, job.worker()));
  ASSIGN_OR_RETURN(std::unique_ptr<Model> model,
                   Model::Create(options_.graph, *device_));
  model_ = ClipGradients(std::move(model), job);
  InputOptions input;
  input.data_dir = options_.data_dir;
  input.seed = job.seed();
  input.repeat = true;
  ASSIGN_OR_RETURN(const ModelInputs inputs,
                   ModelInputsOf(job.model(), options_.graph.loss.label));
  ASSIGN_OR_RETURN(input_, InputPipeline::Open(job.train(), inputs, input));
  ASSIGN_OR_RETURN(parameters_,
                   LocalParameters::Create(model_->variables(), job));
  run_id_ = RandomRunId();
  return absl::OkStatus();
}

absl::Status LocalTraining::Resume() {
  ASSIGN_OR_RETURN(
      const CheckpointStore store,
      CheckpointStore::OpenForWriting(options_.job.checkpoint().directory()));
  ASSIGN_OR_RETURN(const std::optional<int64_t> newest, store.NewestIntact());
  if (!newest.has_value()) {
    ASSIGN_OR_RETURN(const std::vector<int64_t> steps, store.ListSteps());
    if (steps.empty()) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat(
        "checkpoint directory ", store.directory(), ": none of its ",
        steps.size(), " checkpoints is intact; move them away to start anew"));
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> checkpoint,
                   CheckpointReader::Open(store.PathOf(*newest)));
  RETURN_IF_ERROR(parameters_->Restore(*checkpoint)) << store.PathOf(*newest);
  step_ = *newest;
  run_id_ = checkpoint->manifest().run_id();
  LOG(INFO) << "resuming at step " << step_ << " from "
            << store.PathOf(*newest);
  return absl::OkStatus();
}

int64_t LocalTraining::EndStep() const {
  const job::TrainingEnd& end = options_.job.end();
  int64_t steps = end.has_steps() ? end.steps() : INT64_MAX;
  if (end.has_epochs()) {
    const double batches = end.epochs() * input_->total_examples() /
                           options_.job.train().batch_size();
    steps = std::min(steps, static_cast<int64_t>(std::ceil(batches)));
  }
  return steps;
}

absl::Status LocalTraining::TrainTo(int64_t end, int64_t checkpoint_every) {
  TrainingLoop::Options loop_options;
  loop_options.overlap = false;  // nothing is in flight here
  loop_options.non_finite_loss = options_.job.worker().non_finite_loss();
  loop_options.seed = options_.job.seed();
  while (step_ < end && !stopping_) {
    const int64_t stop =
        std::min(end, (step_ / checkpoint_every + 1) * checkpoint_every);
    CountedSteps steps(step_, stop, stopping_);
    loop_options.first_pass = step_;
    loop_options.counted_corrupt_records = metrics_.corrupt_records.value();
    TrainingReporter reporter(clock_);
    TrainingLoop loop(loop_options, *model_, *input_, *parameters_, steps,
                      clock_, metrics_, reporter);
    RETURN_IF_ERROR(loop.Run());
    step_ = steps.completed();
    const TrainingReport report = reporter.Take();
    if (report.wait_ratio) metrics_.wait_ratio.Set(*report.wait_ratio);
    LOG(INFO) << "step " << step_ << " of " << end << ", loss "
              << report.loss_sum / std::max<int64_t>(report.examples, 1) << ", "
              << report.examples / absl::ToDoubleSeconds(report.elapsed)
              << " examples/s";
    RETURN_IF_ERROR(WriteCheckpoint(/*final=*/step_ >= end));
  }
  return absl::OkStatus();
}

absl::Status LocalTraining::WriteCheckpoint(bool final) {
  const job::CheckpointPolicy& policy = options_.job.checkpoint();
  ASSIGN_OR_RETURN(CheckpointStore store,
                   CheckpointStore::OpenForWriting(policy.directory()));
  ASSIGN_OR_RETURN(const std::string directory, store.Begin(step_));
  ASSIGN_OR_RETURN(
      const std::unique_ptr<ShardWriter> writer,
      ShardWriter::Create(absl::StrCat(directory, "/", kShardFile)));
  RETURN_IF_ERROR(parameters_->Save(*writer));
  durable::CheckpointManifest manifest;
  ASSIGN_OR_RETURN(*manifest.add_file(), writer->Finish());
  manifest.set_global_step(step_);
  manifest.set_run_id(run_id_);
  *manifest.mutable_job() = options_.job;
  parameters_->Describe(manifest);
  manifest.set_final(final);
  manifest.set_created_unix_micros(absl::ToUnixMicros(clock_.Now()));
  RETURN_IF_ERROR(store.Commit(directory, manifest));
  return store.Prune(policy.max_to_keep(), step_);
}

absl::Status LocalTraining::Evaluate() {
  if (!options_.job.has_eval()) return absl::OkStatus();
  for (size_t i = 0; i < model_->variables().size(); ++i) {
    RETURN_IF_ERROR(parameters_->Pull({{i, model_->HostValue(i)}})->Wait());
    RETURN_IF_ERROR(model_->Upload(i));
  }
  InputOptions input;
  input.data_dir = options_.data_dir;
  const LossSpec& loss = options_.graph.loss;
  ASSIGN_OR_RETURN(const ModelInputs inputs,
                   ModelInputsOf(options_.job.model(), loss.label));
  ASSIGN_OR_RETURN(const std::unique_ptr<InputPipeline> examples,
                   InputPipeline::Open(options_.job.eval(), inputs, input));
  const std::unique_ptr<StagedBatch> staged = model_->NewStagedBatch();
  ASSIGN_OR_RETURN(Metrics metrics,
                   Metrics::Create(options_.job.model(), loss));
  BatchResult total;
  while (true) {
    ASSIGN_OR_RETURN(const Batch* batch, examples->Next());
    if (batch == nullptr) break;
    RETURN_IF_ERROR(model_->Stage(*batch, *staged));
    ParameterClient::PullRequest pull;
    for (const StagedBatch::Rows& rows : staged->rows()) {
      pull.rows.push_back({rows.table, rows.ids, rows.values});
    }
    RETURN_IF_ERROR(parameters_->Pull(std::move(pull))->Wait());
    ASSIGN_OR_RETURN(const EvaluatedBatch evaluated, model_->Evaluate(*staged));
    total.examples += evaluated.result.examples;
    total.loss_sum += evaluated.result.loss_sum;
    metrics.Add(*batch, evaluated.outputs);
  }
  LOG(INFO) << "step " << step_ << ": "
            << Describe(metrics.Results(), total.loss_sum / total.examples)
            << " on " << total.examples << " examples";
  return absl::OkStatus();
}

}  // namespace parasol
