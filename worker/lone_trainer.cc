#include "worker/lone_trainer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "cluster/job/learning_rate_field.h"
#include "ml/input/feature/model_inputs.h"
#include "ml/loss/loss_spec.h"
#include "ml/model/device_training.h"
#include "ml/model/graph_inputs.h"
#include "storage/checkpoint_reader.h"
#include "worker/store/updating_model.h"
#include "worker/training_loop.h"
#include "worker/worker_device.h"

namespace parasol {
LoneTrainer::LoneTrainer(Options options, Clock& clock,
                         MetricsRegistry& metrics)
    : options_(std::move(options)),
      composition_(Compose(options_.job, {.devices = num_replicas()})),
      clock_(clock),
      metrics_(metrics) {}

absl::StatusOr<std::unique_ptr<LoneTrainer>> LoneTrainer::Open(
    Options options, Clock& clock, MetricsRegistry& metrics) {
  std::unique_ptr<LoneTrainer> trainer(
      new LoneTrainer(std::move(options), clock, metrics));
  const job::Job& job = trainer->options_.job;
  const Graph& graph = trainer->options_.graph;
  RETURN_IF_ERROR(CheckLossCode(graph.outputs));
  InputOptions input;
  input.data_dir = trainer->options_.data_dir;
  input.seed = job.seed();
  // Replicas in step open it again, each for its own shard.
  input.by_number = !trainer->composition_.in_step;
  if (trainer->composition_.in_step) {
    input.num_shards = trainer->num_replicas();
  }
  ASSIGN_OR_RETURN(const ModelInputs inputs,
                   TrainingInputsOf(job.model(), graph));
  ASSIGN_OR_RETURN(trainer->input_,
                   InputPipeline::Open(job.train(), inputs, input));
  RETURN_IF_ERROR(trainer->OpenReplicas());
  if (job.has_eval()) {
    ASSIGN_OR_RETURN(
        trainer->evaluation_,
        ModelEvaluation::Open(job.model(), graph, job.eval(), input.data_dir));
  }
  return trainer;
}

absl::Status LoneTrainer::OpenReplicas() {
  const job::Job& job = options_.job;
  const ProcessReplicas& replicas = options_.replicas;
  std::string devices;
  if (composition_.in_step) {
    ASSIGN_OR_RETURN(replicas_,
                     ReplicaThreads::Create({.job = job,
                                             .graph = options_.graph,
                                             .devices = replicas.devices,
                                             .threads = options_.threads},
                                            *input_, clock_, metrics_));
    composition_ = replicas_->composition();
    devices = replicas_->Describe();
  } else {
    ASSIGN_OR_RETURN(device_, OpenDevice(replicas.devices.front(),
                                         options_.threads, job.worker()));
    RETURN_IF_ERROR(MakeModel());
    devices = device_->name();
  }
  LOG(INFO) << "strategy " << StrategyName(replicas.strategy) << ": "
            << num_replicas()
            << (num_replicas() == 1 ? " replica" : " replicas")
            << " in sync, each with a batch of " << job.train().batch_size()
            << ", on " << devices;
  return absl::OkStatus();
}

// ForTraining() has the gradients of tables on the host left to clip, if any.
absl::Status LoneTrainer::MakeModel() {
  const job::Job& job = options_.job;
  ASSIGN_OR_RETURN(std::unique_ptr<Model> model,
                   Model::Create(options_.graph, *device_));
  DeviceTraining* const training = model->device_training();
  composition_ =
      Compose(job, {.updating_devices = training == nullptr ? 0 : 1});
  if (composition_.store == Store::kDevices) {
    const job::Job with_rate = JobWithRate();
    ASSIGN_OR_RETURN(
        variables_, DeviceVariables::Create(options_.graph.variables, with_rate,
                                            *training, *device_));
    if (composition_.rows == TableStore::kDevice) {
      ASSIGN_OR_RETURN(tables_, DeviceTables::Create(with_rate, *device_));
    }
    model = UpdateOnDevice(std::move(model), *variables_, tables_.get());
  }
  ASSIGN_OR_RETURN(model_, ForTraining(std::move(model), *device_, job));
  return absl::OkStatus();
}

StoredVariables* LoneTrainer::VariablesOnDevice() {
  return replicas_ == nullptr ? variables_.get() : replicas_->variables();
}

job::Job LoneTrainer::JobWithRate() const {
  job::Job job = options_.job;
  if (rate_) SetInitialLearningRate(*rate_, *job.mutable_optimizer());
  return job;
}

absl::Status LoneTrainer::UseRate(std::optional<double> rate) {
  rate_ = rate;
  if (variables_ != nullptr) {
    // There may not be memory for both.
    model_.reset();
    tables_.reset();
    variables_.reset();
    return MakeModel();
  }
  if (VariablesOnDevice() == nullptr) return absl::OkStatus();
  return replicas_->UseOptimizers(JobWithRate());
}

absl::Status LoneTrainer::Load(const std::string& checkpoint,
                               std::optional<double> rate) {
  parameters_.reset();
  if (rate != rate_) {
    RETURN_IF_ERROR(UseRate(rate));
  }
  StoredVariables* const on_device = VariablesOnDevice();
  ASSIGN_OR_RETURN(
      parameters_,
      on_device == nullptr
          ? ParameterStore::Create(options_.graph.variables, JobWithRate())
          : ParameterStore::Create(*on_device, JobWithRate(), tables_.get()));
  if (checkpoint.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> reader,
                   CheckpointReader::Open(checkpoint));
  RETURN_IF_ERROR(parameters_->Restore(*reader)) << checkpoint;
  return absl::OkStatus();
}

absl::Status LoneTrainer::Train(int64_t first_step, StepSource& steps,
                                TrainingReporter& reporter) {
  if (replicas_ != nullptr) return TrainInStep(first_step, steps, reporter);
  TrainingLoop::Options loop;
  loop.overlap = false;  // nothing is in flight here
  loop.non_finite_loss = options_.job.worker().non_finite_loss();
  loop.seed = options_.job.seed();
  loop.first_pass = first_step;
  loop.counted_corrupt_records = metrics_.corrupt_records.value();
  return TrainingLoop(loop, *model_, *input_, *parameters_, steps, clock_,
                      metrics_, reporter)
      .Run();
}

absl::Status LoneTrainer::TrainInStep(int64_t first_step, StepSource& steps,
                                      TrainingReporter& reporter) {
  const auto is_over = [&, told = first_step](int64_t completed) mutable {
    for (; told < completed; ++told) steps.Complete();
    const auto next = steps.Start();
    return !next.ok() || !next->has_value();
  };
  return replicas_->Train(first_step, is_over, *parameters_, reporter);
}

DeviceTables::CacheUse LoneTrainer::TakeCacheUse() {
  if (tables_ == nullptr) return {};
  const DeviceTables::CacheUse use = tables_->TakeCacheUse();
  metrics_.cached_rows.Add(static_cast<double>(use.rows));
  metrics_.cache_misses.Add(static_cast<double>(use.misses));
  return use;
}

std::vector<Model*> LoneTrainer::EvaluatingModels() {
  return replicas_ == nullptr ? std::vector<Model*>{model_.get()}
                              : replicas_->models();
}

absl::Status LoneTrainer::GiveValues(const std::vector<Model*>& models) {
  for (Model* const model : models) {
    for (size_t i = 0; i < model->variables().size(); ++i) {
      RETURN_IF_ERROR(parameters_->Pull({{i, model->HostValue(i)}})->Wait());
      RETURN_IF_ERROR(model->Upload(i));
    }
  }
  return absl::OkStatus();
}

absl::Status LoneTrainer::AddHistograms(EventFile::Histograms& histograms) {
  StoredVariables& variables = parameters_->variables();
  for (size_t i = 0; i < variables.specs().size(); ++i) {
    ASSIGN_OR_RETURN(const absl::Span<const float> values,
                     variables.Read(i, kValueArray));
    histograms.emplace_back(variables.specs()[i].name, HistogramOf(values));
  }
  const job::Model& spec = options_.job.model();
  for (int i = 0; i < spec.sparse_table_size(); ++i) {
    ASSIGN_OR_RETURN(const std::vector<float> rows, parameters_->SampleRows(i));
    histograms.emplace_back(absl::StrCat(spec.sparse_table(i).name(), "/rows"),
                            HistogramOf(rows));
  }
  return absl::OkStatus();
}

absl::StatusOr<LoneTrainer::Evaluated> LoneTrainer::Evaluate(
    absl::FunctionRef<bool()> cancelled) {
  RETURN_IF_ERROR(parameters_->variables().SwapAverages());
  const std::vector<Model*> models = EvaluatingModels();
  RETURN_IF_ERROR(GiveValues(models));
  Evaluated evaluated;
  if (options_.job.tensorboard_histograms()) {
    RETURN_IF_ERROR(AddHistograms(evaluated.histograms));
  }
  absl::StatusOr<ModelEvaluation::Result> result = evaluation_->Run(
      models,
      [this](absl::Span<const StagedBatch::Rows> tables) {
        TrainingParameters::PullRequest pull;
        for (const StagedBatch::Rows& rows : tables) {
          pull.rows.push_back({rows.table, rows.ids, rows.values});
        }
        return parameters_->Pull(std::move(pull))->Wait();
      },
      cancelled);
  RETURN_IF_ERROR(parameters_->variables().SwapAverages());
  ASSIGN_OR_RETURN(evaluated.result, std::move(result));
  return evaluated;
}

}  // namespace parasol
