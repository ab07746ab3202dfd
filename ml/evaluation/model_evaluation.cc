#include "ml/evaluation/model_evaluation.h"

#include <algorithm>
#include <cstddef>

#include "base/status_macros.h"
#include "ml/evaluation/evaluate_batches.h"
#include "ml/input/feature/batch.h"
#include "ml/input/feature/model_inputs.h"
#include "ml/metric/metric_spec.h"
#include "ml/model/graph_inputs.h"

namespace parasol {
namespace {

// Sums of a model's losses over a data set. The mean of a named output's is
// over the examples that count for it in the whole set, not in each batch.
class LossSums {
 public:
  explicit LossSums(const std::vector<OutputSpec>& outputs)
      : outputs_(outputs),
        sums_(outputs.front().is_named() ? outputs.size() : 0) {}

  void Add(const Batch& batch, const BatchResult& result) {
    examples_ += result.examples;
    rest_ += result.loss_sum;
    for (size_t i = 0; i < sums_.size(); ++i) {
      const Target& target = batch.targets[i];
      const double scaled = result.output_loss_sums[i];
      // One without a weight may have a loss that is no number.
      if (outputs_[i].weight > 0) rest_ -= outputs_[i].weight * scaled;
      if (target.scale > 0) sums_[i].loss += scaled / double{target.scale};
      sums_[i].counted += batch.size - std::count(target.weights.begin(),
                                                  target.weights.end(), 0.0f);
    }
  }

  int64_t examples() const { return examples_; }
  double Loss() const {
    double loss = rest_ / static_cast<double>(examples_);
    for (size_t i = 0; i < sums_.size(); ++i) {
      if (outputs_[i].weight == 0 || sums_[i].counted == 0) continue;
      loss += outputs_[i].weight * sums_[i].Mean();
    }
    return loss;
  }
  MetricResults OutputLosses() const {
    MetricResults losses;
    for (size_t i = 0; i < sums_.size(); ++i) {
      losses.emplace_back(ResultName(outputs_[i], "loss"), sums_[i].Mean());
    }
    return losses;
  }

 private:
  struct Sum {
    double loss = 0;
    int64_t counted = 0;

    // NaN without examples.
    double Mean() const { return loss / static_cast<double>(counted); }
  };

  const std::vector<OutputSpec>& outputs_;
  int64_t examples_ = 0;
  double rest_ = 0;  // all that is no named output's: L2 terms
  std::vector<Sum> sums_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ModelEvaluation>> ModelEvaluation::Open(
    const job::Model& model, const Graph& graph, const job::Dataset& dataset,
    const std::string& data_dir) {
  RETURN_IF_ERROR(CheckLossCode(graph.outputs));
  ASSIGN_OR_RETURN(Metrics metrics, Metrics::Create(model, graph.outputs));
  ASSIGN_OR_RETURN(const ModelInputs inputs, InputsOf(model, graph));
  std::unique_ptr<ModelEvaluation> evaluation(
      new ModelEvaluation(std::move(metrics), graph.outputs));
  evaluation->input_.data_dir = data_dir;
  // The order does not matter to sums.
  job::Dataset in_order = dataset;
  in_order.set_shuffle_buffer(0);
  ASSIGN_OR_RETURN(evaluation->examples_,
                   InputPipeline::Open(in_order, inputs, evaluation->input_));
  return evaluation;
}

absl::StatusOr<ModelEvaluation::Result> ModelEvaluation::Run(
    absl::Span<Model* const> models, ReadRows read_rows,
    absl::FunctionRef<bool()> cancelled, VisitOutputs visit) const {
  ASSIGN_OR_RETURN(const std::unique_ptr<InputPipeline> input,
                   examples_->OpenAgain(input_));
  LossSums sums(outputs_);
  Metrics metrics = metrics_;
  const auto add = [&](const Batch& batch, const EvaluatedBatch& evaluated) {
    sums.Add(batch, evaluated.result);
    metrics.Add(batch, evaluated.outputs);
    return visit(evaluated.outputs);
  };
  const auto next = [&]() -> absl::StatusOr<const Batch*> {
    if (cancelled()) return absl::CancelledError("evaluation was stopped");
    return input->Next();
  };
  RETURN_IF_ERROR(EvaluateBatches(models, next, read_rows, add));
  Result result = {.examples = sums.examples(),
                   .loss = sums.Loss(),
                   .metrics = sums.OutputLosses()};
  for (auto& metric : metrics.Results()) {
    result.metrics.push_back(std::move(metric));
  }
  return result;
}

}  // namespace parasol
