#include "ml/model/graph_inputs.h"

#include "base/status_macros.h"
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

}  // namespace parasol
