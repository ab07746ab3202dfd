#ifndef PARASOL_ML_MODEL_GRAPH_INPUTS_H_
#define PARASOL_ML_MODEL_GRAPH_INPUTS_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
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

// The masks of a graph's sequences: nodes that no layer of the job describes.
// Layers read the mask of the input "history" as "history.mask", and there is
// one once a layer does.

// Returns the name of the mask of input `name`.
std::string MaskNameOf(absl::string_view name);

// Returns the number of the input whose mask is called `name`; nullopt if none
// of the graph's sequences has such a mask.
std::optional<size_t> SequenceOfMask(const Graph& graph,
                                     absl::string_view name);

// Appends the mask of an input to the graph's nodes, and returns the number of
// its value.
//   InvalidArgument  the input is no sequence.
absl::StatusOr<size_t> AddSequenceMask(size_t input, Graph& graph);

// Returns true if a node of the graph is a mask.
bool IsSequenceMask(const Graph& graph, const GraphNode& node);

// Returns the layer of `model`, from which `graph` was resolved, that each node
// computes; null for a mask. They point into `model`.
std::vector<const job::Layer*> LayersOfNodes(const job::Model& model,
                                             const Graph& graph);

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_GRAPH_INPUTS_H_
