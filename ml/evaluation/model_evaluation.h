#ifndef PARASOL_ML_EVALUATION_MODEL_EVALUATION_H_
#define PARASOL_ML_EVALUATION_MODEL_EVALUATION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/input/input_pipeline.h"
#include "ml/loss/loss_spec.h"
#include "ml/metric/metric_results.h"
#include "ml/metric/metrics.h"
#include "ml/model/graph.h"
#include "ml/model/model.h"
#include "proto/job.pb.h"

namespace parasol {

// The loss and the metrics of a job's model over one data set, which is
// opened once. Not thread-safe.
class ModelEvaluation {
 public:
  // Results over the whole data set.
  struct Result {
    int64_t examples = 0;
    double loss = 0;  // mean per example, L2 terms included
    // Behind the losses of named outputs, each a mean over the examples that
    // count for it: "ctr/loss".
    MetricResults metrics;
  };

  // Writes the values of the rows that a batch reads: one entry for each of
  // Model::tables(), perhaps without ids.
  using ReadRows =
      absl::FunctionRef<absl::Status(absl::Span<const StagedBatch::Rows>)>;

  // Function that takes the outputs of a batch, as EvaluatedBatch has them,
  // valid only during the call. An error ends the evaluation.
  using VisitOutputs =
      absl::FunctionRef<absl::Status(absl::Span<const float> outputs)>;

  // Opens `dataset`, whose paths are relative to `data_dir`, for `model`, whose
  // graph is `graph`. Fails as CheckLossCode(), InputPipeline::Open() and
  // Metrics::Create() do.
  static absl::StatusOr<std::unique_ptr<ModelEvaluation>> Open(
      const job::Model& model, const Graph& graph, const job::Dataset& dataset,
      const std::string& data_dir);

  // Evaluates a model with the values that were uploaded to it and the rows
  // that `read_rows` gives. `models`: at least one, of the spec that Open()
  // had, all with the same values; each takes batches on a thread of its own,
  // the first one on the caller's. However many there are, batches are added in
  // the order of the data, so the result has the same bits. Calls `cancelled`
  // before each batch, and `visit` with its outputs in the order of the data;
  // no two calls of `cancelled`, `visit` and `read_rows` overlap.
  //   Cancelled  `cancelled` returned true.
  //   any other  as for `read_rows`, `visit`, InputPipeline and
  //              Model::Evaluate().
  absl::StatusOr<Result> Run(
      absl::Span<Model* const> models, ReadRows read_rows,
      absl::FunctionRef<bool()> cancelled,
      VisitOutputs visit = [](absl::Span<const float>) {
        return absl::OkStatus();
      }) const;

 private:
  ModelEvaluation(Metrics metrics, std::vector<OutputSpec> outputs)
      : metrics_(std::move(metrics)), outputs_(std::move(outputs)) {}

  const Metrics metrics_;  // metrics without examples
  const std::vector<OutputSpec> outputs_;
  InputOptions input_;
  std::unique_ptr<InputPipeline> examples_;  // keeps the set open
};

}  // namespace parasol

#endif  // PARASOL_ML_EVALUATION_MODEL_EVALUATION_H_
