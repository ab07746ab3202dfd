#include "tests/benchmark/training_step.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "ml/initializer/initializer.h"
#include "ml/layer/variable_spec.h"
#include "ml/model/graph.h"

namespace parasol {
namespace {

// Small, so that the loss stays finite however long the same batch is trained.
constexpr double kLearningRate = .001;

absl::StatusOr<std::unique_ptr<const Optimizer>> Sgd(double learning_rate) {
  job::Optimizer optimizer;
  optimizer.mutable_sgd()->set_learning_rate(learning_rate);
  return MakeOptimizer(optimizer);
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
    const job::Model& spec, const Batch& batch, Device& device) {
  std::unique_ptr<TrainingStep> step(new TrainingStep(batch));
  ASSIGN_OR_RETURN(Graph graph, ResolveGraph(spec));
  ASSIGN_OR_RETURN(step->model_, Model::Create(std::move(graph), device));
  RETURN_IF_ERROR(step->Initialize());
  return step;
}

absl::Status TrainingStep::Initialize() {
  staged_ = model_->NewStagedBatch();
  ASSIGN_OR_RETURN(trained_, Sgd(kLearningRate));
  ASSIGN_OR_RETURN(untrained_, Sgd(1));
  for (const VariableSpec& variable : model_->variables()) {
    std::vector<float>& value = values_.emplace_back(variable.elements());
    RETURN_IF_ERROR(parasol::Initialize(variable.initializer, /*seed=*/1,
                                        variable.name, variable.shape,
                                        /*first=*/0, absl::MakeSpan(value)));
  }
  const uint64_t rows = LargestId(batch_) + 1;
  for (const TableUse& table : model_->tables()) {
    tables_.emplace_back(rows * table.width, .01f);
  }
  return absl::OkStatus();
}

absl::StatusOr<double> TrainingStep::Run() {
  RETURN_IF_ERROR(UploadValues());
  RETURN_IF_ERROR(model_->Stage(batch_, *staged_));
  LookUpRows();
  const auto apply = [this](size_t variable, absl::Span<const float> gradient) {
    Apply(variable, gradient);
  };
  const auto apply_rows = [this](size_t table, absl::Span<const uint64_t> ids,
                                 absl::Span<const float> gradients) {
    ApplyRows(table, ids, gradients);
  };
  ASSIGN_OR_RETURN(const BatchResult result,
                   model_->Gradients(*staged_, /*seed=*/steps_,
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

void TrainingStep::LookUpRows() {
  for (const StagedBatch::Rows& rows : staged_->rows()) {
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
