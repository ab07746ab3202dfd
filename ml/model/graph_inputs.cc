#include "ml/model/graph_inputs.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "ml/layer/id_inputs.h"
#include "ml/layer/sequence/sequence_mask.h"
#include "ml/loss/class_weights.h"
#include "ml/metric/metric_spec.h"

namespace parasol {

absl::StatusOr<ModelInputs> InputsOf(const job::Model& model,
                                     const Graph& graph) {
  ASSIGN_OR_RETURN(ModelInputs inputs,
                   ModelInputsOf(model, graph.outputs.front().loss.label));
  for (int i = 0; i < model.output_size(); ++i) {
    const job::Output& output = model.output(i);
    inputs.targets.push_back({.output = output.name(),
                              .form = graph.outputs[i].loss.label,
                              .label = output.label(),
                              .mask = output.mask()});
  }
  inputs.columns = LossColumns(graph.outputs);
  AddMetricColumns(model, inputs.columns);
  return inputs;
}

absl::StatusOr<ModelInputs> TrainingInputsOf(const job::Model& model,
                                             const Graph& graph) {
  ASSIGN_OR_RETURN(ModelInputs inputs, InputsOf(model, graph));
  inputs.columns = LossColumns(graph.outputs);
  if (!graph.has_named_outputs()) {
    inputs.class_weights = ClassWeightsOf(graph.outputs.front().loss.loss);
  }
  for (size_t i = 0; i < inputs.targets.size(); ++i) {
    inputs.targets[i].class_weights =
        ClassWeightsOf(graph.outputs[i].loss.loss);
  }
  return inputs;
}

std::string MaskNameOf(absl::string_view name) {
  return absl::StrCat(name, kMaskSuffix);
}

std::optional<size_t> SequenceOfMask(const Graph& graph,
                                     absl::string_view name) {
  if (!absl::ConsumeSuffix(&name, kMaskSuffix)) return std::nullopt;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const GraphInput& input = graph.inputs[i];
    const bool is_sequence =
        input.what.kind == LayerInput::Kind::kIds && StepsOf(input.what) > 0;
    if (is_sequence && input.name == name) return i;
  }
  return std::nullopt;
}

absl::StatusOr<size_t> AddSequenceMask(size_t input, Graph& graph) {
  const GraphInput& sequence = graph.inputs[input];
  GraphNode node = {.name = MaskNameOf(sequence.name),
                    .inputs = {input},
                    .first_variable = graph.variables.size()};
  ASSIGN_OR_RETURN(node.layer, MakeSequenceMask({sequence.what}));
  graph.nodes.push_back(std::move(node));
  return graph.num_values() - 1;
}

// All layers but masks read tensors, or look ids up in a table.
bool IsSequenceMask(const Graph& graph, const GraphNode& node) {
  if (node.table || node.inputs.empty()) return false;
  const size_t input = node.inputs.front();
  return input < graph.inputs.size() &&
         graph.inputs[input].what.kind == LayerInput::Kind::kIds;
}

std::vector<const job::Layer*> LayersOfNodes(const job::Model& model,
                                             const Graph& graph) {
  std::vector<const job::Layer*> layers;
  int next = 0;
  for (const GraphNode& node : graph.nodes) {
    layers.push_back(IsSequenceMask(graph, node) ? nullptr
                                                 : &model.layer(next++));
  }
  CHECK_EQ(next, model.layer_size());
  return layers;
}

}  // namespace parasol
