#include "ml/evaluation/model_evaluation.h"

#include "base/status_macros.h"
#include "ml/input/feature/model_inputs.h"

namespace parasol {

absl::StatusOr<std::unique_ptr<ModelEvaluation>> ModelEvaluation::Open(
    const job::Model& model, const LossSpec& loss, const job::Dataset& dataset,
    const std::string& data_dir) {
  ASSIGN_OR_RETURN(Metrics metrics, Metrics::Create(model, loss));
  ASSIGN_OR_RETURN(const ModelInputs inputs, ModelInputsOf(model, loss.label));
  std::unique_ptr<ModelEvaluation> evaluation(
      new ModelEvaluation(std::move(metrics)));
  evaluation->input_.data_dir = data_dir;
  // The order does not matter to sums.
  job::Dataset in_order = dataset;
  in_order.set_shuffle_buffer(0);
  ASSIGN_OR_RETURN(evaluation->examples_,
                   InputPipeline::Open(in_order, inputs, evaluation->input_));
  return evaluation;
}

absl::StatusOr<ModelEvaluation::Result> ModelEvaluation::Run(
    Model& model, ReadRows read_rows, absl::FunctionRef<bool()> cancelled,
    VisitOutputs visit) const {
  ASSIGN_OR_RETURN(const std::unique_ptr<InputPipeline> input,
                   examples_->OpenAgain(input_));
  const std::unique_ptr<StagedBatch> staged = model.NewStagedBatch();
  BatchResult sum;
  Metrics metrics = metrics_;
  while (true) {
    if (cancelled()) return absl::CancelledError("evaluation was stopped");
    ASSIGN_OR_RETURN(const Batch* const batch, input->Next());
    if (batch == nullptr) break;
    RETURN_IF_ERROR(model.Stage(*batch, *staged));
    RETURN_IF_ERROR(read_rows(staged->rows()));
    ASSIGN_OR_RETURN(const EvaluatedBatch evaluated, model.Evaluate(*staged));
    sum.examples += evaluated.result.examples;
    sum.loss_sum += evaluated.result.loss_sum;
    metrics.Add(*batch, evaluated.outputs);
    RETURN_IF_ERROR(visit(evaluated.outputs));
  }
  return Result{sum.examples, sum.loss_sum / sum.examples, metrics.Results()};
}

}  // namespace parasol
