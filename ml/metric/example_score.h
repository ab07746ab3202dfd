#ifndef PARASOL_ML_METRIC_EXAMPLE_SCORE_H_
#define PARASOL_ML_METRIC_EXAMPLE_SCORE_H_

#include <functional>

#include "absl/types/span.h"
#include "ml/loss/loss_spec.h"
#include "proto/job.pb.h"

namespace parasol {

// A function that returns what one example adds to a metric that is a mean over
// examples, from the model's outputs for it and its labels. For several outputs
// it is their mean.
using ExampleScore = std::function<double(absl::Span<const float> outputs,
                                          absl::Span<const float> labels)>;

// Returns the function of `metric`, which ResolveMetrics() has returned for
// `loss`, or null if the metric is no mean over examples.
// The function of root_mean_squared_error returns the square. Predictions are
// PredictionOf().
ExampleScore ExampleScoreOf(const job::Metric& metric, const LossSpec& loss);

// Returns the prediction that a model makes with an output: its sigmoid if
// labels are probabilities and it is none itself, and the output otherwise.
double PredictionOf(float output, const LossSpec& loss);

}  // namespace parasol

#endif  // PARASOL_ML_METRIC_EXAMPLE_SCORE_H_
