#ifndef PARASOL_ML_METRIC_METRICS_H_
#define PARASOL_ML_METRIC_METRICS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/input/feature/batch.h"
#include "ml/loss/loss_spec.h"
#include "ml/metric/auc.h"
#include "ml/metric/example_score.h"
#include "ml/metric/metric_results.h"
#include "proto/job.pb.h"

namespace parasol {

// The metrics of a job's model over a data set, batch by batch. Each is a mean
// over examples, in which an example counts by its weight (divided by the sum
// of weights; the loss divides by the number of examples). Their memory is
// bounded, see Auc. Not thread-safe.
class Metrics {
 public:
  // `outputs`: of the model, for one example. Errors of ResolveLoss() and
  // ResolveMetrics().
  static absl::StatusOr<Metrics> Create(const job::Model& model,
                                        int64_t outputs);

  // `outputs`: [examples, outputs] of the model for `batch`, whose labels the
  // model's loss has found good.
  void Add(const Batch& batch, absl::Span<const float> outputs);
  // As if all of `other`'s batches had been added here; it is of the same
  // model.
  void Merge(const Metrics& other);

  // By their names in the job file, in its order. NaN: undefined so far, as
  // everything is without examples, and auc without examples of both kinds.
  MetricResults Results() const;

 private:
  struct Mean {
    job::Metric::KindCase metric;
    ExampleScore score;
    double sum = 0;
  };

  explicit Metrics(const LossSpec& loss) : loss_(loss) {}
  double ResultOf(job::Metric::KindCase metric) const;

  LossSpec loss_;
  std::vector<job::Metric::KindCase> metrics_;
  std::vector<Mean> means_;  // all but auc
  std::vector<Auc> auc_;     // one or none
  double weight_sum_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_ML_METRIC_METRICS_H_
