#ifndef PARASOL_LOOP_METRIC_H_
#define PARASOL_LOOP_METRIC_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "loop/variable.h"
#include "ml/tape/tensor.h"

namespace parasol::loop {

// The mean of values that all replicas have seen since Reset(), as
// tf.keras.metrics.Mean: updated in steps, read outside. Its sums are variables
// of each replica's own, "<name>/total" and "<name>/count", and so are in
// checkpoints. Cheap to copy: copies are the same metric.
class MeanMetric {
 public:
  // Makes the metric in the strategy whose scope is open. Returns errors of
  // Variable::Create().
  static absl::StatusOr<MeanMetric> Create(absl::string_view name);

  // Counts each element of `values`, with weights if they are given, whose
  // shape is the same.
  absl::Status Update(const Tensor& values) const;
  absl::Status Update(const Tensor& values, const Tensor& weights) const;
  // Returns the mean over all replicas, outside of steps; 0 of nothing. All
  // processes ask alike.
  Tensor Result() const;
  // Forgets what was counted, outside of steps.
  absl::Status Reset() const;

 private:
  MeanMetric(Variable total, Variable count)
      : total_(std::move(total)), count_(std::move(count)) {}

  Variable total_;
  Variable count_;
};

// The share of examples that a model's outputs have right, as
// tf.keras.metrics.SparseCategoricalAccuracy and BinaryAccuracy.
class AccuracyMetric {
 public:
  static absl::StatusOr<AccuracyMetric> Create(absl::string_view name);

  // Counts examples by their labels, class numbers [examples] or [examples, 1],
  // float32 or int64, and the model's outputs [examples, classes]. Of one
  // output for each example the sign decides between the classes 0 and 1.
  absl::Status Update(const Tensor& labels, const Tensor& outputs) const;
  Tensor Result() const { return mean_.Result(); }
  absl::Status Reset() const { return mean_.Reset(); }

 private:
  explicit AccuracyMetric(MeanMetric mean) : mean_(std::move(mean)) {}

  MeanMetric mean_;
};

}  // namespace parasol::loop

#endif  // PARASOL_LOOP_METRIC_H_
