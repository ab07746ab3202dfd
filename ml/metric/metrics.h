#ifndef PARASOL_ML_METRIC_METRICS_H_
#define PARASOL_ML_METRIC_METRICS_H_

#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/input/feature/batch.h"
#include "ml/loss/loss_spec.h"
#include "ml/metric/auc.h"
#include "ml/metric/binary_counts.h"
#include "ml/metric/custom_metric.h"
#include "ml/metric/example_score.h"
#include "ml/metric/metric_results.h"
#include "ml/metric/r_squared.h"
#include "ml/metric/ranked_groups.h"
#include "proto/job.pb.h"

namespace parasol {

// The metrics of a job's model over a data set, added up batch by batch. Each
// is a mean over examples in which an example counts by its weight: it divides
// by the sum of weights, while the loss divides by the number of examples. The
// means over groups say how examples count. Memory is bounded (see Auc), but
// for metrics of groups, which keep all examples (see RankedGroups). Not
// thread-safe.
class Metrics {
 public:
  // Returns the metrics of `model`, whose outputs are `outputs` (Graph::outputs
  // of ml/model). Fails as ResolveAllMetrics() and MakeCustomMetric() do.
  static absl::StatusOr<Metrics> Create(const job::Model& model,
                                        absl::Span<const OutputSpec> outputs);

  // Adds the examples of `batch`, whose labels Loss::CheckLabels() has
  // accepted, and which has the columns of losses and metrics (InputsOf() of
  // ml/model); to the metrics of a named output only those that count for it.
  // `outputs` is [examples, elements of all outputs] of the model for `batch`.
  void Add(const Batch& batch, absl::Span<const float> outputs);
  // Adds all batches of `other`, whose model must be the same.
  void Merge(const Metrics& other);

  // Returns the metrics with their names in the job file, in its order; a named
  // output's name is in front ("ctr/auc"). NaN stands for undefined: all
  // metrics without examples, auc without examples of both kinds, r_squared of
  // labels that are all equal, calibration of labels that are all 0, and what
  // RankedGroups says.
  MetricResults Results() const;

 private:
  // A mean over examples.
  struct Mean {
    ExampleScore score;
    double sum = 0;
  };
  // The quotient of two of them.
  struct Quotient {
    Mean prediction;
    Mean label;
  };
  // The sums of a metric, by its kind.
  using Sums = std::variant<Mean, Quotient, Auc, BinaryCounts, RSquared,
                            RankedGroups, CustomSums>;
  struct Entry {
    job::Metric metric;
    Sums sums;
    size_t group = 0;  // index in Batch::columns, for RankedGroups
  };
  // One example of a batch.
  struct Example {
    const Batch& batch;
    int64_t number = 0;
    absl::Span<const float> outputs = {};
    absl::Span<const float> labels = {};
    double weight = 1;
  };

  // The metrics of one output.
  struct Part {
    OutputSpec output;
    std::vector<Entry> entries;
    double weight_sum = 0;
  };

  static absl::StatusOr<Sums> SumsOf(const job::Metric& metric,
                                     const LossSpec& loss);
  static uint64_t GroupOf(const Example& example, size_t column);
  static void AddExample(const Example& example, Part& part);
  static double ResultOf(const Part& part, const Entry& entry);

  std::vector<Part> parts_;
  int64_t width_ = 0;  // elements of all outputs
};

}  // namespace parasol

#endif  // PARASOL_ML_METRIC_METRICS_H_
