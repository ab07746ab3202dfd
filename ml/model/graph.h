#ifndef PARASOL_ML_MODEL_GRAPH_H_
#define PARASOL_ML_MODEL_GRAPH_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ml/layer/layer.h"
#include "ml/layer/variable_spec.h"
#include "proto/job.pb.h"

namespace parasol {

// What a model reads of an example.
struct GraphInput {
  std::string name = {};
  LayerInput what = {};
  size_t index = 0;  // in Batch::dense or Batch::ids
  // Whether each example must have ids_per_example: an `embedding` reads it.
  bool needs_each_column = false;
};

// A layer and what it is applied to. Values are numbered: first the graph's
// inputs, then each node's output.
struct GraphNode {
  std::string name = {};
  std::shared_ptr<const Layer> layer = nullptr;
  std::vector<size_t> inputs;  // values
  bool is_relu = false;        // and nothing else
  size_t first_variable = 0;   // those of the layer follow each other
};

// A table in which layers look up ids.
struct GraphTable {
  std::string name = {};
  int64_t width = 0;
  // Whose ids: in the order of Batch::ids, each once. None: nobody reads it.
  std::vector<size_t> id_inputs = {};
  double l2 = 0;  // the same in all layers that read it
};

// A job's model, checked: every default filled in, every shape known.
struct Graph {
  std::vector<GraphInput> inputs;
  std::vector<GraphNode> nodes;    // each behind those that it reads
  std::vector<GraphTable> tables;  // as in the job
  // Of all layers, one after another, and their l2.
  std::vector<VariableSpec> variables;
  std::vector<double> variable_l2;

  size_t num_values() const { return inputs.size() + nodes.size(); }
  // The node whose output value `value` is; null: the value is an input.
  const GraphNode* Producer(size_t value) const {
    return value < inputs.size() ? nullptr : &nodes[value - inputs.size()];
  }
  // Of one example; 0 for ids.
  int64_t ElementsOfValue(size_t value) const;
  // Of the last layer.
  int64_t outputs() const { return ElementsOfValue(num_values() - 1); }
};

//   InvalidArgument  the spec is not a model: names the layer.
absl::StatusOr<Graph> ResolveGraph(const job::Model& spec);

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_GRAPH_H_
