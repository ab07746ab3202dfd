#ifndef PARASOL_ML_MODEL_GRAPH_INPUTS_H_
#define PARASOL_ML_MODEL_GRAPH_INPUTS_H_

#include "absl/status/statusor.h"
#include "ml/input/feature/model_inputs.h"
#include "ml/model/graph.h"
#include "proto/job.pb.h"

namespace parasol {

// Returns what `model`, whose graph is `graph`, reads of an example: its
// inputs, the labels that its losses ask for, and the columns that losses and
// metrics read beside them. Errors as for ModelInputsOf().
absl::StatusOr<ModelInputs> InputsOf(const job::Model& model,
                                     const Graph& graph);

// Returns the same for training, with the weights of classes and without the
// columns of metrics.
absl::StatusOr<ModelInputs> TrainingInputsOf(const job::Model& model,
                                             const Graph& graph);

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_GRAPH_INPUTS_H_
