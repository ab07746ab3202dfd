#include "tests/benchmark/compute/training_step.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "cluster/job/defaults.h"
#include "ml/initializer/initializer.h"
#include "ml/layer/variable_spec.h"
#include "ml/model/graph.h"
#include "worker/store/updating_model.h"

namespace parasol {
namespace {

// Small, so that the loss stays finite however long the same batch is trained.
constexpr double kLearningRate = .001;
constexpr uint64_t kSeed = 1;

job::Optimizer Sgd(double learning_rate) {
  job::Optimizer optimizer;
  optimizer.mutable_sgd()->set_learning_rate(learning_rate);
  return optimizer;
}

uint64_t LargestId(const Batch& batch) {
  uint64_t largest = 0;
  for (const IdFeature& feature : batch.ids) {
    for (const uint64_t id : feature.ids) largest = std::max(largest, id);
  }
  return largest;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TrainingStep>> TrainingStep::Create(
    const job::Model& spec, const Batch& batch, Device& device,
    Updates updates) {
  std::unique_ptr<TrainingStep> step(new TrainingStep(batch));
  ASSIGN_OR_RETURN(Graph graph, ResolveGraph(spec));
  ASSIGN_OR_RETURN(step->model_, Model::Create(std::move(graph), device));
  RETURN_IF_ERROR(step->Initialize());
  DeviceTraining* const training = step->model_->device_training();
  if (updates == Updates::kOnHost || training == nullptr) {
    RETURN_IF_ERROR(step->InitializeValues());
  } else {
    RETURN_IF_ERROR(step->UpdateOnDevice(spec, *training, device));
  }
  return step;
}

absl::Status TrainingStep::Initialize() {
  ASSIGN_OR_RETURN(trained_, MakeOptimizer(Sgd(kLearningRate)));
  ASSIGN_OR_RETURN(untrained_, MakeOptimizer(Sgd(1)));
  const uint64_t rows = LargestId(batch_) + 1;
  for (const TableUse& table : model_->tables()) {
    tables_.emplace_back(rows * table.width, .01f);
  }
  return absl::OkStatus();
}

absl::Status TrainingStep::InitializeValues() {
  for (const VariableSpec& variable : model_->variables()) {
    std::vector<float>& value = values_.emplace_back(variable.elements());
    RETURN_IF_ERROR(parasol::Initialize(variable.initializer, kSeed,
                                        variable.name, variable.shape,
                                        /*first=*/0, absl::MakeSpan(value)));
  }
  return absl::OkStatus();
}

absl::Status TrainingStep::UpdateOnDevice(const job::Model& spec,
                                          DeviceTraining& training,
                                          Device& device) {
  job::Job job;
  job.set_name("benchmark");
  *job.mutable_model() = spec;
  *job.mutable_optimizer() = Sgd(kLearningRate);
  job.set_seed(kSeed);
  FillDefaults(job);
  ASSIGN_OR_RETURN(on_device_, DeviceVariables::Create(model_->variables(), job,
                                                       training, device));
  ASSIGN_OR_RETURN(tables_on_device_, DeviceTables::Create(job, device));
  ASSIGN_OR_RETURN(parameters_, ParameterStore::Create(
                                    *on_device_, job, tables_on_device_.get()));
  model_ = parasol::UpdateOnDevice(std::move(model_), *on_device_,
                                   tables_on_device_.get());
  return absl::OkStatus();
}

absl::StatusOr<double> TrainingStep::Run() {
  if (on_device_ == nullptr) {
    RETURN_IF_ERROR(UploadValues());
  }
  const size_t turns = on_device_ == nullptr ? 1 : 2;
  while (staged_.size() < turns) staged_.push_back(model_->NewStagedBatch());
  StagedBatch& staged = *staged_[steps_ % turns];
  RETURN_IF_ERROR(model_->Stage(batch_, staged));
  LookUpRows(staged);
  const auto apply = [this](size_t variable, absl::Span<const float> gradient) {
    Apply(variable, gradient);
  };
  const auto apply_rows = [this](size_t table, absl::Span<const uint64_t> ids,
                                 absl::Span<const float> gradients) {
    ApplyRows(table, ids, gradients);
  };
  ASSIGN_OR_RETURN(const BatchResult result,
                   model_->Gradients(staged, /*seed=*/steps_,
                                     {.variable = apply, .rows = apply_rows}));
  ++steps_;
  return result.loss_sum / result.examples;
}

absl::Status TrainingStep::UploadValues() {
  for (size_t i = 0; i < values_.size(); ++i) {
    std::copy(values_[i].begin(), values_[i].end(),
              model_->HostValue(i).begin());
    RETURN_IF_ERROR(model_->Upload(i));
  }
  return absl::OkStatus();
}

void TrainingStep::LookUpRows(const StagedBatch& staged) {
  for (const StagedBatch::Rows& rows : staged.rows()) {
    const int64_t width = model_->tables()[rows.table].width;
    const float* const table = tables_[rows.table].data();
    float* out = rows.values.data();
    for (const uint64_t id : rows.ids) {
      out = std::copy_n(table + id * width, width, out);
    }
  }
}

void TrainingStep::Apply(size_t variable, absl::Span<const float> gradient) {
  std::vector<float>& value = values_[variable];
  const bool trained = model_->variables()[variable].trained;
  UpdateSpan update;
  update.count = value.size();
  update.gradient = reinterpret_cast<const std::byte*>(gradient.data());
  update.value = value.data();
  update.new_value = value.data();
  (trained ? trained_ : untrained_)->Apply(steps_, update);
}

void TrainingStep::ApplyRows(size_t table, absl::Span<const uint64_t> ids,
                             absl::Span<const float> gradients) {
  const int64_t width = model_->tables()[table].width;
  touched_rows_.clear();
  for (const uint64_t id : ids) {
    touched_rows_.push_back(tables_[table].data() + id * width);
  }
  trained_->ApplyRows(
      steps_,
      {.count = ids.size(),
       .width = static_cast<size_t>(width),
       .gradients = reinterpret_cast<const std::byte*>(gradients.data()),
       .rows = touched_rows_.data()});
}

}  // namespace parasol
