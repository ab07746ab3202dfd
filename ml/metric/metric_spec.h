#ifndef PARASOL_ML_METRIC_METRIC_SPEC_H_
#define PARASOL_ML_METRIC_METRIC_SPEC_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ml/loss/loss_spec.h"
#include "proto/job.pb.h"

namespace parasol {

// Returns the metric's name in job files: "root_mean_squared_error".
const std::string& NameOf(job::Metric::KindCase metric);

// Returns the metrics that are evaluated for a model beside its loss:
// model.metric in its order, or if that is empty the ones that suit the form of
// label that the loss asks for:
//   a class, or a probability for each  accuracy
//   other probabilities                 accuracy, and for one output auc
//   other numbers                       root_mean_squared_error
// Needs no device.
//   InvalidArgument  a metric has no kind, is there twice, or has no meaning
//                    for this loss or this number of outputs: names it.
absl::StatusOr<std::vector<job::Metric::KindCase>> ResolveMetrics(
    const job::Model& model, const LossSpec& loss);

}  // namespace parasol

#endif  // PARASOL_ML_METRIC_METRIC_SPEC_H_
