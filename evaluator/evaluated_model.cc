#include "evaluator/evaluated_model.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "ml/model/graph.h"
#include "storage/checkpoint_reader.h"

namespace parasol {

absl::StatusOr<std::unique_ptr<EvaluatedModel>> EvaluatedModel::Create(
    const job::Job& job, const Options& options) {
  ASSIGN_OR_RETURN(const Graph graph, ResolveGraph(job.model()));
  std::unique_ptr<EvaluatedModel> evaluated(new EvaluatedModel);
  ASSIGN_OR_RETURN(evaluated->evaluation_,
                   ModelEvaluation::Open(job.model(), graph.loss, job.eval(),
                                         options.data_dir));
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
  RETURN_IF_ERROR(checkpoint->Verify());
  return checkpoint->manifest();
}

absl::StatusOr<EvaluatedModel::Result> EvaluatedModel::Run(
    const std::function<bool()>& cancelled,
    ModelEvaluation::VisitOutputs visit) {
  return evaluation_->Run(
      *model_,
      [this](absl::Span<const StagedBatch::Rows> tables) {
        for (const StagedBatch::Rows& rows : tables) {
          tables_[rows.table].Read(rows.ids, rows.values);
        }
        return absl::OkStatus();
      },
      cancelled, visit);
}

}  // namespace parasol
