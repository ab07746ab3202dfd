#ifndef PARASOL_ML_MODEL_FUNCTION_FUNCTION_GRAPH_H_
#define PARASOL_ML_MODEL_FUNCTION_FUNCTION_GRAPH_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ml/model/graph.h"
#include "proto/job.pb.h"

namespace parasol {

// Resolves the layers of `spec` to the graph of a function (ModelFunction).
// It needs no loss, no labels, no columns of data sets where inputs have
// shapes, and nothing to train; what `spec` says of losses, metrics and labels
// is not looked at. Outputs have any shape: they are those that `spec` names,
// or the last layer's. Names of layers, variables and tables begin with
// `prefix` and "/", unless it is empty: "generator/dense_1/kernel".
//   InvalidArgument  the spec is not a model: names the layer or the output; or
//                    `prefix` is not a name.
absl::StatusOr<Graph> ResolveFunction(const job::Model& spec,
                                      absl::string_view prefix = "");

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_FUNCTION_FUNCTION_GRAPH_H_
