#include "ml/model/function/planned_backward.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "ml/model/memory/arena.h"
#include "ml/model/memory/grow.h"
#include "ml/model/variable_layout.h"

namespace parasol {

PlannedGradients NoGradients(const Graph& graph) {
  const auto dense = std::count_if(
      graph.inputs.begin(), graph.inputs.end(), [](const GraphInput& input) {
        return input.what.kind == LayerInput::Kind::kDense;
      });
  return {.outputs = std::vector<bool>(graph.output_values.size()),
          .variables = std::vector<bool>(graph.variables.size()),
          .tables = std::vector<bool>(graph.tables.size()),
          .inputs = std::vector<bool>(dense)};
}

PlannedBackward::PlannedBackward(const Graph& graph, PlannedGradients wanted,
                                 Device& device, Memory& memory)
    : graph_(graph),
      wanted_(std::move(wanted)),
      device_(device),
      memory_(memory),
      plan_(MakePlan(graph, wanted_, device.edge_type())),
      pass_(plan_, VariablesBehind(plan_), device, memory.between_layers),
      is_reached_(graph.variables.size()),
      offsets_(graph.variables.size(), kNull),
      arrays_(graph.variables.size()) {
  PlaceUnwanted();
}

// A layer computes the gradients of all of its variables or, if it can, of
// none. One layer's unwanted gradients are overwritten by the next one's.
void PlannedBackward::PlaceUnwanted() {
  for (const BackwardOp& op : plan_.backward) {
    if (op.kind != BackwardOp::Kind::kStep) continue;
    const PlanStep& step = plan_.steps[op.step];
    const bool is_skipped =
        !step.changes_variables && step.layer->SkipsGradients();
    int64_t end = 0;
    for (size_t i = 0; i < step.num_variables; ++i) {
      const size_t variable = step.first_variable + i;
      is_reached_[variable] = true;
      if (wanted_.variables[variable] || is_skipped) continue;
      offsets_[variable] = end;
      end += AlignedElements(graph_.variables[variable].elements());
    }
    unwanted_elements_ = std::max(unwanted_elements_, end);
  }
}

absl::Status PlannedBackward::Begin(
    int64_t examples, absl::Span<const absl::Span<const float>> outputs,
    absl::Span<const absl::Span<float>> variables) {
  RETURN_IF_ERROR(pass_.Reserve(examples));
  if (unwanted_elements_ > 0) {
    RETURN_IF_ERROR(Grow(device_, unwanted_elements_, memory_.unwanted));
  }
  for (size_t i = 0; i < arrays_.size(); ++i) {
    if (wanted_.variables[i]) {
      arrays_[i] = variables[i].data();
      if (!is_reached_[i])
        std::fill(variables[i].begin(), variables[i].end(), 0);
    } else {
      arrays_[i] = offsets_[i] == kNull ? nullptr
                                        : memory_.unwanted.data() + offsets_[i];
    }
  }
  for (size_t i = 0; i < plan_.outputs.size(); ++i) {
    const std::optional<size_t>& buffer = plan_.outputs[i].gradient;
    if (!buffer) continue;
    float* const to = pass_.gradient(*buffer);
    std::copy(outputs[i].begin(), outputs[i].end(), to);
  }
  return absl::OkStatus();
}

void PlannedBackward::ReadInputGradients(
    int64_t examples, absl::Span<const absl::Span<float>> inputs) const {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::optional<size_t>& buffer = plan_.input_gradients[i];
    if (!buffer) {
      std::fill(inputs[i].begin(), inputs[i].end(), 0);
      continue;
    }
    const float* const from = pass_.gradient(*buffer);
    std::copy_n(from, examples * plan_.buffers[*buffer].elements,
                inputs[i].begin());
  }
}

PlannedBackward& PlannedBackwards::For(const PlannedGradients& wanted) {
  const auto known = std::find_if(
      plans_.begin(), plans_.end(),
      [&wanted](const auto& plan) { return plan->wanted() == wanted; });
  if (known != plans_.end()) {
    std::rotate(plans_.begin(), known, known + 1);
    return *plans_.front();
  }
  if (plans_.size() == kMaxPlans) plans_.pop_back();
  plans_.insert(plans_.begin(), std::make_unique<PlannedBackward>(
                                    graph_, wanted, device_, memory_));
  return *plans_.front();
}

}  // namespace parasol
