#include "cluster/checkpoint/model/evaluated_model.h"

#include "absl/types/span.h"
#include "base/status_macros.h"
#include "ml/model/graph.h"

namespace parasol {

absl::StatusOr<std::unique_ptr<EvaluatedModel>> EvaluatedModel::Create(
    const job::Job& job, const Options& options) {
  ASSIGN_OR_RETURN(const Graph graph, ResolveGraph(job.model()));
  std::unique_ptr<EvaluatedModel> evaluated(new EvaluatedModel);
  ASSIGN_OR_RETURN(
      evaluated->evaluation_,
      ModelEvaluation::Open(job.model(), graph, job.eval(), options.data_dir));
  ASSIGN_OR_RETURN(evaluated->checkpoint_,
                   CheckpointModel::Create(job, graph, options.compute));
  return evaluated;
}

absl::StatusOr<durable::CheckpointManifest> EvaluatedModel::Load(
    const std::string& directory, CheckpointModel::VisitValues visit) {
  return checkpoint_->Load(directory, visit);
}

absl::StatusOr<EvaluatedModel::Result> EvaluatedModel::Run(
    const std::function<bool()>& cancelled,
    ModelEvaluation::VisitOutputs visit) {
  return evaluation_->Run(
      {&checkpoint_->model()},
      [this](absl::Span<const StagedBatch::Rows> tables) {
        return checkpoint_->ReadRows(tables);
      },
      cancelled, visit);
}

}  // namespace parasol
