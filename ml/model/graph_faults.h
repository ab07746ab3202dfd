#ifndef PARASOL_ML_MODEL_GRAPH_FAULTS_H_
#define PARASOL_ML_MODEL_GRAPH_FAULTS_H_

#include <optional>
#include <set>
#include <vector>

#include "base/faults.h"
#include "ml/loss/loss_spec.h"
#include "ml/model/graph.h"
#include "proto/job.pb.h"

namespace parasol {

// Use that a graph is made for: to be trained by its losses, or to be a
// function (function/function_graph.h).
enum class GraphUse { kTraining, kFunction };

// A model that may have faults, as far as it is known.
struct CheckedGraph {
  // Set if the model has no fault.
  std::optional<Graph> graph;
  // Set if the model's losses and its outputs fit each other, whatever faults
  // the layers before have.
  std::optional<std::vector<OutputSpec>> outputs;
};

// Resolves `spec` as ResolveGraph() does, but goes on behind a fault: `faults`
// gets all of them, in the order of the model, each with the error that
// ResolveGraph() would give. Of a layer that reads one at fault only the names
// are checked, as its shapes are unknown; and so of the layers whose positions
// are `faulty`, which others have found at fault.
CheckedGraph CheckGraph(const job::Model& spec, const std::set<int>& faulty,
                        Faults& faults, GraphUse use = GraphUse::kTraining);

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_GRAPH_FAULTS_H_
