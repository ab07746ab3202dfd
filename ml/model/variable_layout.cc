#include "ml/model/variable_layout.h"

#include <algorithm>

#include "ml/model/memory/arena.h"

namespace parasol {
namespace {

VariableRange VariablesOf(const PlanStep& step) {
  return {step.first_variable, step.first_variable + step.num_variables};
}

// Returns the ranges of the layers that have variables, ascending.
std::vector<VariableRange> LayersOf(const Graph& graph) {
  std::vector<VariableRange> layers;
  for (const GraphNode& node : graph.nodes) {
    const size_t count = node.layer->variables().size();
    if (count == 0) continue;
    layers.push_back({node.first_variable, node.first_variable + count});
  }
  return layers;
}

}  // namespace

// Cuts the array into equal shares, and puts each layer where its middle lies.
VariableLayout LayOutVariables(const Graph& graph) {
  VariableLayout layout;
  layout.offsets.push_back(0);
  for (const VariableSpec& variable : graph.variables) {
    layout.offsets.push_back(layout.offsets.back() +
                             AlignedElements(variable.elements()));
  }
  const int64_t shares =
      std::clamp<int64_t>(layout.size() / VariableLayout::kMinElements, 1,
                          VariableLayout::kMaxPieces);
  int64_t last_share = -1;
  for (const VariableRange& layer : LayersOf(graph)) {
    const int64_t middle =
        (layout.offsets[layer.begin] + layout.offsets[layer.end]) / 2;
    const int64_t share = middle * shares / std::max<int64_t>(layout.size(), 1);
    if (share != last_share) layout.pieces.push_back({layer.begin, layer.end});
    last_share = share;
    layout.pieces.back().end = layer.end;
    for (size_t i = layer.begin; i < layer.end; ++i) {
      layout.piece_of.push_back(layout.pieces.size() - 1);
      layout.layer_begin.push_back(layer.begin);
    }
  }
  return layout;
}

std::vector<std::vector<VariableRange>> PiecesBehind(
    const Plan& plan, const std::vector<VariableRange>& pieces) {
  std::vector<std::vector<VariableRange>> behind(plan.backward.size());
  std::vector<bool> is_placed(pieces.size());
  for (size_t op = plan.backward.size(); op-- > 0;) {
    if (plan.backward[op].kind != BackwardOp::Kind::kStep) continue;
    const VariableRange written =
        VariablesOf(plan.steps[plan.backward[op].step]);
    if (written.empty()) continue;
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (is_placed[i] || !written.Meets(pieces[i])) continue;
      behind[op].push_back(pieces[i]);
      is_placed[i] = true;
    }
  }
  return behind;
}

std::vector<std::vector<VariableRange>> VariablesBehind(const Plan& plan) {
  std::vector<std::vector<VariableRange>> behind(plan.backward.size());
  for (size_t op = 0; op < plan.backward.size(); ++op) {
    if (plan.backward[op].kind != BackwardOp::Kind::kStep) continue;
    const VariableRange written =
        VariablesOf(plan.steps[plan.backward[op].step]);
    if (!written.empty()) behind[op].push_back(written);
  }
  return behind;
}

}  // namespace parasol
