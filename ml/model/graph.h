#ifndef PARASOL_ML_MODEL_GRAPH_H_
#define PARASOL_ML_MODEL_GRAPH_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ml/layer/layer.h"
#include "ml/layer/variable_spec.h"
#include "ml/loss/loss_spec.h"
#include "proto/job.pb.h"

namespace parasol {

// An input that a model reads of each example.
struct GraphInput {
  std::string name = {};
  LayerInput what = {};
  size_t index = 0;  // index in Batch::dense or Batch::ids
  // True if each example must have exactly ids_per_example ids, because a layer
  // that reads the input needs every id.
  bool needs_each_column = false;
};

// A layer and the values that it is applied to. Values are numbered: first the
// graph's inputs, then each node's output.
struct GraphNode {
  std::string name = {};
  std::shared_ptr<const Layer> layer = nullptr;
  std::vector<size_t> inputs;  // numbers of values
  // Index of the layer's first variable; its others follow.
  size_t first_variable = 0;
  // Index of the table in which the layer looks up ids; nullopt: it reads none.
  std::optional<size_t> table = std::nullopt;
};

// A table in which layers look up ids.
struct GraphTable {
  std::string name = {};
  int64_t width = 0;
  // Indices in Batch::ids, ascending, of the inputs that are looked up in this
  // table. Empty if no layer reads the table.
  std::vector<size_t> id_inputs = {};
  double l2 = 0;  // the same in all layers that read the table
  // True if nothing changes the rows: they have no gradients, and `l2` is 0.
  bool frozen = false;
  // True if pushes say how often ids occur (SparseTable.admission).
  bool counts = false;
};

// A job's model after all checks: every default is filled in, every shape is
// known. A process resolves its job's model once and passes this value on. It
// needs no device: the chief places the variables by it. Copies share the
// layers.
struct Graph {
  std::vector<GraphInput> inputs;
  std::vector<GraphNode> nodes;    // each behind the nodes that it reads
  std::vector<GraphTable> tables;  // same order as the job's
  // Variables of all layers, in the order of the layers, kernel before bias,
  // and the l2 of each.
  std::vector<VariableSpec> variables;
  std::vector<double> variable_l2;
  // One output or more. Several are named; a single one is the last layer's, or
  // named too. Each is of a node, whose value has the number in output_values.
  // Outputs of a function (function/function_graph.h) have no kind of loss.
  std::vector<OutputSpec> outputs;
  std::vector<size_t> output_values;

  size_t num_values() const { return inputs.size() + nodes.size(); }
  // Returns the node whose output is value `value`; null if the value is an
  // input.
  const GraphNode* Producer(size_t value) const {
    return value < inputs.size() ? nullptr : &nodes[value - inputs.size()];
  }
  // Returns the number of elements of a value for one example; 0 for ids.
  int64_t ElementsOfValue(size_t value) const {
    const GraphNode* node = Producer(value);
    if (node != nullptr) return ElementsOf(node->layer->output_shape());
    const LayerInput& what = inputs[value].what;
    return what.kind == LayerInput::Kind::kIds ? 0 : ElementsOf(what.shape);
  }
  // Number of elements of all outputs together for one example.
  int64_t output_width() const;
  // True if the outputs have labels of their own.
  bool has_named_outputs() const {
    return !outputs.empty() && outputs.front().is_named();
  }
};

// Resolves `spec` to a graph.
//   InvalidArgument  the spec is not a model: names the layer, or the field of
//                    the loss.
absl::StatusOr<Graph> ResolveGraph(const job::Model& spec);

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_GRAPH_H_
