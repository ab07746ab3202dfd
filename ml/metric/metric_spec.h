#ifndef PARASOL_ML_METRIC_METRIC_SPEC_H_
#define PARASOL_ML_METRIC_METRIC_SPEC_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ml/input/feature/model_inputs.h"
#include "ml/loss/loss_spec.h"
#include "proto/job.pb.h"

namespace parasol {

// Returns the metric's name in job files, "root_mean_squared_error", with its
// number where it has one that is not the default, "precision_at_0.9"; k
// always: "top_3_accuracy", "ndcg_at_10", "recall_at_10". A custom metric's
// name is its type, with its parameters if it has some:
// "coverage(share=0.9,side=low)". A character of theirs that is no letter,
// digit or one of _.+- is %2F, …, and more than 80 bytes of them are a
// fingerprint: "coverage(#9f0c6a53d1e2b478)". So two metrics of different
// parameters have different names.
std::string NameOf(const job::Metric& metric);

// Sets the unset fields of a metric's message: threshold .5, k 5 of
// top_k_accuracy and 10 of rankings.
void FillDefaults(job::Metric& metric);

// Returns the metrics that are evaluated for a model beside its loss:
// model.metric in its order, or if that is empty the ones that suit the form of
// label that the loss asks for:
//   a class, or a probability for each  accuracy
//   other probabilities                 accuracy, and for one output auc
//   other numbers                       root_mean_squared_error
//   what the loss pairwise_logistic, in_batch_softmax or custom has  none
// Defaults are filled in. Needs no device.
//   InvalidArgument  a metric has no kind, is there twice (with the same
//                    number or parameters), has a field that is not in its
//                    range, or has no meaning for this loss or this number of
//                    outputs: names it.
absl::StatusOr<std::vector<job::Metric>> ResolveMetrics(const job::Model& model,
                                                        const LossSpec& loss);

// Returns the same for an output whose job has the metrics `wanted`.
absl::StatusOr<std::vector<job::Metric>> ResolveMetrics(
    const google::protobuf::RepeatedPtrField<job::Metric>& wanted,
    const LossSpec& loss);

// Returns the metrics of each of a model's outputs: model.metric, or the
// metrics of each model.output. Fails as ResolveMetrics() does; the message
// names a named output.
absl::StatusOr<std::vector<std::vector<job::Metric>>> ResolveAllMetrics(
    const job::Model& model, absl::Span<const OutputSpec> outputs);

// Returns the column of a metric of groups; one without a name for others.
ExampleColumn GroupColumnOf(const job::Metric& metric);

// Appends to `columns` those that the metrics of a job's model read beside
// labels, unless they are there.
void AddMetricColumns(const job::Model& model,
                      std::vector<ExampleColumn>& columns);

// Returns the name of an output's metric among the results: "ctr/auc", or "auc"
// of an output without a name.
std::string ResultName(const OutputSpec& output, absl::string_view metric);

// Returns the part of a result's name that is the metric's: "auc" of "ctr/auc".
absl::string_view MetricOf(absl::string_view result);

// Returns the names of all results of evaluations: "loss", the loss of each
// named output, and the metrics. Fails as ResolveAllMetrics() does.
absl::StatusOr<std::vector<std::string>> ResultNames(
    const job::Model& model, absl::Span<const OutputSpec> outputs);

}  // namespace parasol

#endif  // PARASOL_ML_METRIC_METRIC_SPEC_H_
