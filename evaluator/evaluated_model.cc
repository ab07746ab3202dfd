#include "evaluator/evaluated_model.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "ml/input/feature/model_inputs.h"
#include "ml/model/graph.h"
#include "storage/checkpoint_reader.h"

namespace parasol {

absl::StatusOr<std::unique_ptr<EvaluatedModel>> EvaluatedModel::Create(
    const job::Job& job, const Options& options) {
  ASSIGN_OR_RETURN(const Graph graph, ResolveGraph(job.model()));
  ASSIGN_OR_RETURN(Metrics metrics, Metrics::Create(job.model(), graph.loss));
  std::unique_ptr<EvaluatedModel> evaluated(
      new EvaluatedModel(job.eval(), std::move(metrics)));
  // The order does not matter to sums.
  evaluated->dataset_.set_shuffle_buffer(0);
  evaluated->input_.data_dir = options.data_dir;
  ASSIGN_OR_RETURN(const ModelInputs inputs,
                   ModelInputsOf(job.model(), graph.loss.label));
  ASSIGN_OR_RETURN(
      evaluated->examples_,
      InputPipeline::Open(evaluated->dataset_, inputs, evaluated->input_));
  ASSIGN_OR_RETURN(evaluated->device_,
                   Device::Open(options.device, {.threads = options.threads}));
  ASSIGN_OR_RETURN(evaluated->model_,
                   Model::Create(graph, *evaluated->device_));
  for (const job::SparseTable& table : job.model().sparse_table()) {
    ASSIGN_OR_RETURN(CheckpointRows rows,
                     CheckpointRows::Create(table, job.seed()));
    evaluated->tables_.push_back(std::move(rows));
  }
  return evaluated;
}

absl::StatusOr<durable::CheckpointManifest> EvaluatedModel::Load(
    const std::string& directory) {
  ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> checkpoint,
                   CheckpointReader::Open(directory));
  const std::vector<VariableSpec>& variables = model_->variables();
  for (size_t i = 0; i < variables.size(); ++i) {
    const absl::Status read = checkpoint
                                  ->ReadElements(variables[i].name, kValueArray,
                                                 0, model_->HostValue(i))
                                  .status();
    if (absl::IsNotFound(read)) {
      return absl::DataLossError(absl::StrCat(directory, ": ", read.message()));
    }
    RETURN_IF_ERROR(read);
    RETURN_IF_ERROR(model_->Upload(i));
  }
  for (CheckpointRows& table : tables_) {
    const absl::Status read = table.Load(*checkpoint);
    if (absl::IsNotFound(read)) {
      return absl::DataLossError(absl::StrCat(directory, ": ", read.message()));
    }
    RETURN_IF_ERROR(read) << directory;
  }
  return checkpoint->manifest();
}

absl::StatusOr<EvaluatedModel::Result> EvaluatedModel::Run(
    const std::function<bool()>& cancelled) {
  ASSIGN_OR_RETURN(const std::unique_ptr<InputPipeline> input,
                   examples_->OpenAgain(input_));
  const std::unique_ptr<StagedBatch> staged = model_->NewStagedBatch();
  BatchResult sum;
  Metrics metrics = metrics_;
  while (true) {
    if (cancelled()) return absl::CancelledError("evaluation was stopped");
    ASSIGN_OR_RETURN(const Batch* const batch, input->Next());
    if (batch == nullptr) break;
    RETURN_IF_ERROR(model_->Stage(*batch, *staged));
    for (const StagedBatch::Rows& rows : staged->rows()) {
      tables_[rows.table].Read(rows.ids, rows.values);
    }
    ASSIGN_OR_RETURN(const EvaluatedBatch evaluated, model_->Evaluate(*staged));
    sum.examples += evaluated.result.examples;
    sum.loss_sum += evaluated.result.loss_sum;
    metrics.Add(*batch, evaluated.outputs);
  }
  return Result{sum.examples, sum.loss_sum / sum.examples, metrics.Results()};
}

}  // namespace parasol
