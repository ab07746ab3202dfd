#include "tool/exchange/onnx/onnx_model.h"

#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ml/layer/id_inputs.h"
#include "ml/loss/output_link.h"
#include "ml/model/graph_inputs.h"
#include "tool/exchange/onnx/onnx_graph.h"
#include "tool/exchange/onnx/onnx_layers.h"

namespace parasol {
namespace {

using onnx::TensorProto;

// What is known of the values of a model's graph while it is made.
class ModelMaker {
 public:
  ModelMaker(const job::Model& model, const Graph& graph,
             const OnnxTableIds& ids)
      : graph_(graph), layers_(LayersOfNodes(model, graph)), ids_(ids) {}

  absl::StatusOr<onnx::GraphProto> Make() {
    AddInputs();
    AddTables();
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      RETURN_IF_ERROR(AddNode(i));
    }
    RETURN_IF_ERROR(AddOutputs());
    return std::move(onnx_).Take();
  }

 private:
  void AddInputs() {
    for (size_t i = 0; i < graph_.inputs.size(); ++i) {
      const GraphInput& input = graph_.inputs[i];
      if (input.what.kind == LayerInput::Kind::kDense) {
        values_.push_back(onnx_.AddInput(input.name, TensorProto::FLOAT,
                                         input.what.shape,
                                         "values after transformations"));
        continue;
      }
      const int64_t steps = StepsOf(input.what);
      const int64_t count = steps > 0 ? steps : input.what.ids_per_example;
      const Shape shape = {count > 0 ? count : -1};
      values_.push_back(onnx_.AddInput(input.name, TensorProto::INT64, shape,
                                       "64-bit ids of the columns"));
      if (IsWeighted(i)) {
        onnx_.AddInput(OnnxWeightsName(input.name), TensorProto::FLOAT, shape,
                       steps > 0 ? "1 for a step with an id, 0 for an empty one"
                                 : "weights of the ids; 0: no id");
      }
    }
  }

  // Returns true if a layer needs the weights of an input's ids. They say which
  // steps of a sequence have one.
  bool IsWeighted(size_t input) const {
    if (StepsOf(graph_.inputs[input].what) > 0) return true;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const std::vector<size_t>& inputs = graph_.nodes[i].inputs;
      if (layers_[i] != nullptr && layers_[i]->has_embedding_bag() &&
          !inputs.empty() && inputs[0] == input) {
        return true;
      }
    }
    return false;
  }

  void AddTables() {
    for (const GraphTable& table : graph_.tables) {
      if (table.id_inputs.empty()) continue;
      const int64_t rows = static_cast<int64_t>(ids_.at(table.name).size()) + 1;
      onnx_.AddTensor(OnnxRowsName(table.name), {rows, table.width});
    }
  }

  // Returns the rows of a table that an input's ids name.
  OnnxValue RowsOf(size_t input, const std::string& table) {
    OnnxValue& rows = rows_[{input, table}];
    if (!rows.empty()) return rows;
    const std::vector<int64_t>& ids = ids_.at(table);
    const OnnxValue places =
        onnx_.AddPlaces(values_[input], ids, static_cast<int64_t>(ids.size()));
    const OnnxValue inputs[] = {OnnxRowsName(table), places};
    rows = onnx_.Add("Gather", inputs);
    return rows;
  }

  // Returns the same with zeros in a sequence's empty steps.
  OnnxValue StepsOfSequence(size_t input, const OnnxValue& rows) {
    const OnnxValue weights[] = {OnnxWeightsName(graph_.inputs[input].name),
                                 onnx_.Numbers({2})};
    const OnnxValue factors[] = {rows, onnx_.Add("Unsqueeze", weights)};
    return onnx_.Add("Mul", factors);
  }

  Shape ShapeOf(size_t value) const {
    const GraphNode* const node = graph_.Producer(value);
    return node == nullptr ? graph_.inputs[value].what.shape
                           : node->layer->output_shape();
  }

  absl::Status AddNode(size_t index) {
    const GraphNode& node = graph_.nodes[index];
    if (layers_[index] == nullptr) {
      // The mask of a sequence is 1 where an id has a weight.
      values_.push_back(OnnxWeightsName(graph_.inputs[node.inputs[0]].name));
      return absl::OkStatus();
    }
    OnnxLayer layer = {.spec = *layers_[index],
                       .output_shape = node.layer->output_shape(),
                       .inputs = {},
                       .shapes = {},
                       .weights = {},
                       .variables = {}};
    const std::string& table = node.layer->table();
    for (const size_t input : node.inputs) {
      layer.inputs.push_back(table.empty() ? values_[input]
                                           : RowsOf(input, table));
      layer.shapes.push_back(ShapeOf(input));
      if (table.empty()) continue;
      layer.weights = OnnxWeightsName(graph_.inputs[input].name);
      const bool is_sequence = StepsOf(graph_.inputs[input].what) > 0;
      if (layer.spec.has_embedding() && is_sequence) {
        layer.inputs.back() = StepsOfSequence(input, layer.inputs.back());
      }
    }
    for (size_t i = 0; i < node.layer->variables().size(); ++i) {
      const VariableSpec& variable = graph_.variables[node.first_variable + i];
      layer.variables.push_back(onnx_.AddTensor(variable.name, variable.shape));
    }
    ASSIGN_OR_RETURN(OnnxValue output, AddOnnxLayer(layer, onnx_),
                     _ << "layer " << node.name);
    values_.push_back(std::move(output));
    return absl::OkStatus();
  }

  absl::Status AddOutputs() {
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      const OutputSpec& output = graph_.outputs[i];
      const bool is_named = output.is_named();
      RETURN_IF_ERROR(
          AddOutput(i, is_named ? output.name : kOnnxOutputs,
                    is_named ? absl::StrCat(output.name, "/probabilities")
                             : kOnnxProbabilities));
    }
    return absl::OkStatus();
  }

  absl::Status AddOutput(size_t index, const std::string& name,
                         const std::string& probabilities) {
    for (const GraphInput& input : graph_.inputs) {
      if (input.name != name && input.name != probabilities) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("input \"", input.name,
                       "\" has the name of an output of the exported model; "
                       "give it another name in the job"));
    }
    const size_t value = graph_.output_values[index];
    const Shape shape = ShapeOf(value);
    onnx_.Rename(values_[value], name);
    onnx_.AddOutput(
        name, shape,
        absl::StrCat("outputs of layer ", graph_.Producer(value)->name));
    const OutputLink link = LinkOf(graph_.outputs[index].loss.loss);
    if (link == OutputLink::kNone) return absl::OkStatus();
    const job::Activation function =
        link == OutputLink::kSoftmax ? job::SOFTMAX : job::SIGMOID;
    onnx_.Rename(AddOnnxActivation(function, values_[value], onnx_),
                 probabilities);
    onnx_.AddOutput(probabilities, shape, "the outputs as probabilities");
    return absl::OkStatus();
  }

  const Graph& graph_;
  const std::vector<const job::Layer*> layers_;  // of the nodes
  const OnnxTableIds& ids_;
  OnnxGraph onnx_;
  // The graph's values: of inputs, then of nodes.
  std::vector<OnnxValue> values_;
  std::map<std::pair<size_t, std::string>, OnnxValue> rows_;
};

}  // namespace

std::string OnnxWeightsName(const std::string& input) {
  return absl::StrCat(input, "/weights");
}

std::string OnnxRowsName(const std::string& table) {
  return absl::StrCat(table, "/rows");
}

absl::StatusOr<onnx::GraphProto> MakeOnnxGraph(const job::Model& model,
                                               const Graph& graph,
                                               const OnnxTableIds& ids) {
  return ModelMaker(model, graph, ids).Make();
}

}  // namespace parasol
