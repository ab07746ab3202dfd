#ifndef PARASOL_ML_METRIC_METRIC_SPEC_H_
#define PARASOL_ML_METRIC_METRIC_SPEC_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ml/loss/loss_spec.h"
#include "proto/job.pb.h"

namespace parasol {

// Returns the metric's name in job files, "root_mean_squared_error", with its
// number where it has one that is not the default: "top_3_accuracy",
// "precision_at_0.9".
std::string NameOf(const job::Metric& metric);

// Sets the unset fields of a metric's message: threshold .5, k 5.
void FillDefaults(job::Metric& metric);

// Returns the metrics that are evaluated for a model beside its loss:
// model.metric in its order, or if that is empty the ones that suit the form of
// label that the loss asks for:
//   a class, or a probability for each  accuracy
//   other probabilities                 accuracy, and for one output auc
//   other numbers                       root_mean_squared_error
// Defaults are filled in. Needs no device.
//   InvalidArgument  a metric has no kind, is there twice (with the same
//   number), has a
//                    field that is not in its range, or has no meaning
//                    for this loss or this number of outputs: names it.
absl::StatusOr<std::vector<job::Metric>> ResolveMetrics(const job::Model& model,
                                                        const LossSpec& loss);

}  // namespace parasol

#endif  // PARASOL_ML_METRIC_METRIC_SPEC_H_
