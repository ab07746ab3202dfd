#ifndef PARASOL_ML_METRIC_EXAMPLE_SCORE_H_
#define PARASOL_ML_METRIC_EXAMPLE_SCORE_H_

#include "absl/types/span.h"
#include "ml/input/feature/model_inputs.h"
#include "proto/job.pb.h"

namespace parasol {

// A function that returns what one example adds to a metric that is a mean over
// examples, from the model's outputs for it and its labels. For several outputs
// it is their mean.
using ExampleScore = double (*)(absl::Span<const float> outputs,
                                absl::Span<const float> labels);

// Returns the function of `metric`, which is any metric but auc that
// ResolveMetrics() allows with a loss that asks for `label`. The function of
// root_mean_squared_error returns the square. A prediction is the sigmoid of an
// output if labels are probabilities, and the output itself otherwise.
ExampleScore ExampleScoreOf(job::Metric::KindCase metric,
                            const LabelForm& label);

}  // namespace parasol

#endif  // PARASOL_ML_METRIC_EXAMPLE_SCORE_H_
