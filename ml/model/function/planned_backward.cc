#include "ml/model/function/planned_backward.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "ml/model/memory/arena.h"
#include "ml/model/memory/grow.h"

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
                                 Device& device, VariableCopies* variables,
                                 Memory& memory)
    : graph_(graph),
      wanted_(std::move(wanted)),
      device_(device),
      variables_(variables),
      memory_(memory),
      plan_(MakePlan(graph, wanted_, device.edge_type())),
      pass_(plan_,
            variables == nullptr
                ? VariablesBehind(plan_)
                : PiecesBehind(plan_, variables->memory().layout().pieces),
            device, memory.between_layers),
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

absl::Status PlannedBackward::Run(
    int64_t examples, absl::Span<const absl::Span<const float>> outputs,
    const ModelFunction::Gradients& gradients, PassExecutor& executor) {
  RETURN_IF_ERROR(Begin(examples, outputs, gradients.variables));
  RETURN_IF_ERROR(executor.RunBackward(
      pass_, arrays_, [&](const VariableRange& range) -> absl::Status {
        if (variables_ != nullptr) return Fetch(range);
        Tell(range, gradients);
        return absl::OkStatus();
      }));
  if (variables_ != nullptr) return Finish(examples, gradients, executor);
  CopyInputGradients(examples, gradients.inputs);
  return absl::OkStatus();
}

absl::Status PlannedBackward::Begin(
    int64_t examples, absl::Span<const absl::Span<const float>> outputs,
    absl::Span<const absl::Span<float>> variables) {
  RETURN_IF_ERROR(pass_.Reserve(examples));
  if (variables_ != nullptr) {
    RETURN_IF_ERROR(variables_->memory().NextGradients());
  } else if (unwanted_elements_ > 0) {
    RETURN_IF_ERROR(Grow(device_, unwanted_elements_, memory_.unwanted));
  }
  for (size_t i = 0; i < arrays_.size(); ++i) {
    arrays_[i] = ArrayOf(i, variables);
    if (!wanted_.variables[i] || is_reached_[i]) continue;
    std::fill(variables[i].begin(), variables[i].end(), 0);
  }
  return BringOutputGradients(outputs);
}

float* PlannedBackward::ArrayOf(
    size_t variable, absl::Span<const absl::Span<float>> variables) const {
  if (!wanted_.variables[variable] && offsets_[variable] == kNull) {
    return nullptr;
  }
  if (variables_ != nullptr) return variables_->memory().gradients()[variable];
  return wanted_.variables[variable]
             ? variables[variable].data()
             : memory_.unwanted.data() + offsets_[variable];
}

// Through pinned memory, as the caller's is not.
absl::Status PlannedBackward::BringOutputGradients(
    absl::Span<const absl::Span<const float>> outputs) {
  size_t elements = 0;
  for (const absl::Span<const float> output : outputs) {
    elements += AlignedElements(static_cast<int64_t>(output.size()));
  }
  if (variables_ != nullptr) {
    RETURN_IF_ERROR(GrowOnHost(device_, elements, memory_.by_outputs));
  }
  float* pinned = memory_.by_outputs.data();
  for (size_t i = 0; i < plan_.outputs.size(); ++i) {
    const std::optional<size_t>& buffer = plan_.outputs[i].gradient;
    if (!buffer) continue;
    float* const to = pass_.gradient(*buffer);
    if (variables_ == nullptr) {
      std::copy(outputs[i].begin(), outputs[i].end(), to);
      continue;
    }
    std::copy(outputs[i].begin(), outputs[i].end(), pinned);
    RETURN_IF_ERROR(device_.Copy(Device::Stream::kCompute,
                                 absl::MakeConstSpan(pinned, outputs[i].size()),
                                 to));
    pinned += AlignedElements(static_cast<int64_t>(outputs[i].size()));
  }
  return absl::OkStatus();
}

void PlannedBackward::Tell(const VariableRange& range,
                           const ModelFunction::Gradients& gradients) const {
  for (size_t i = range.begin; i < range.end; ++i) {
    if (IsComputed(i)) gradients.written(i);
  }
}

VariableRange PlannedBackward::ComputedOf(VariableRange range) const {
  while (!range.empty() && !IsComputed(range.begin)) ++range.begin;
  while (!range.empty() && !IsComputed(range.end - 1)) --range.end;
  return range;
}

absl::Status PlannedBackward::Fetch(const VariableRange& range) {
  const VariableRange computed = ComputedOf(range);
  return computed.empty() ? absl::OkStatus()
                          : variables_->memory().FetchGradients(computed);
}

void PlannedBackward::TakeFetched(
    const VariableRange& range, absl::Span<const absl::Span<float>> variables) {
  for (size_t i = range.begin; i < range.end; ++i) {
    if (!IsComputed(i)) continue;
    const absl::Span<const float> gradient =
        variables_->memory().HostGradient(i);
    std::copy(gradient.begin(), gradient.end(), variables[i].begin());
  }
}

absl::Status PlannedBackward::FetchInputGradients(int64_t examples) {
  RETURN_IF_ERROR(
      device_.Order(Device::Stream::kCompute, Device::Stream::kCopyOut));
  int64_t elements = 0;
  for (const std::optional<size_t>& buffer : plan_.input_gradients) {
    if (buffer) elements += examples * plan_.buffers[*buffer].elements;
  }
  if (elements > 0) {
    RETURN_IF_ERROR(GrowOnHost(device_, elements, memory_.by_inputs));
  }
  float* to = memory_.by_inputs.data();
  for (const std::optional<size_t>& buffer : plan_.input_gradients) {
    if (!buffer) continue;
    const float* const from = pass_.gradient(*buffer);
    const int64_t size = examples * plan_.buffers[*buffer].elements;
    RETURN_IF_ERROR(device_.Copy(Device::Stream::kCopyOut,
                                 absl::MakeConstSpan(from, size), to));
    to += size;
  }
  if (memory_.end == nullptr) {
    ASSIGN_OR_RETURN(memory_.end, device_.NewEvent());
  }
  return device_.Record(Device::Stream::kCopyOut, *memory_.end);
}

// The device has all of its work by now, and computes on while gradients are
// taken in the order in which they come.
absl::Status PlannedBackward::Finish(int64_t examples,
                                     const ModelFunction::Gradients& gradients,
                                     PassExecutor& executor) {
  if (gradients.rows) {
    RETURN_IF_ERROR(executor.row_gradients().Fetch());
  }
  RETURN_IF_ERROR(FetchInputGradients(examples));
  VariableMemory& memory = variables_->memory();
  for (const std::vector<VariableRange>& pieces : pass_.written()) {
    for (const VariableRange& piece : pieces) {
      VariableRange left = ComputedOf(piece);
      if (left.empty()) continue;
      RETURN_IF_ERROR(memory.AwaitGradients(left));
      while (!left.empty()) {
        const size_t begin =
            std::max(left.begin, memory.layout().layer_begin[left.end - 1]);
        const VariableRange layer = {begin, left.end};
        TakeFetched(layer, gradients.variables);
        Tell(layer, gradients);
        left.end = begin;
      }
    }
  }
  RETURN_IF_ERROR(device_.Wait(*memory_.end));
  CopyInputGradients(examples, gradients.inputs);
  return absl::OkStatus();
}

void PlannedBackward::CopyInputGradients(
    int64_t examples, absl::Span<const absl::Span<float>> inputs) const {
  const float* fetched = memory_.by_inputs.data();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::optional<size_t>& buffer = plan_.input_gradients[i];
    if (!buffer) {
      std::fill(inputs[i].begin(), inputs[i].end(), 0);
      continue;
    }
    const int64_t size = examples * plan_.buffers[*buffer].elements;
    const float* from = pass_.gradient(*buffer);
    if (variables_ != nullptr) from = std::exchange(fetched, fetched + size);
    std::copy_n(from, size, inputs[i].begin());
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
  plans_.insert(plans_.begin(),
                std::make_unique<PlannedBackward>(graph_, wanted, device_,
                                                  variables_, memory_));
  return *plans_.front();
}

}  // namespace parasol
