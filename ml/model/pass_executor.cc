#include "ml/model/pass_executor.h"

#include "base/status_macros.h"
#include "ml/kernel/add.h"

namespace parasol {

PassExecutor::PassExecutor(const Graph& graph, const Plan& plan,
                           const std::vector<Loss>& losses, Device& device)
    : graph_(graph),
      plan_(plan),
      losses_(losses),
      device_(device),
      regularizers_(losses.empty() ? std::vector<Regularizer>()
                                   : RegularizersOf(graph)),
      memory_(plan, losses, regularizers_.size(), device),
      layer_passes_(plan, device),
      row_gradients_(device, graph.tables.size()),
      arguments_(plan, graph.tables.size(), device),
      arrays_(plan.steps.size()) {
  for (size_t i = 0; i < arrays_.size(); ++i) {
    arrays_[i].x.resize(plan_.steps[i].inputs.size());
    arrays_[i].dx.resize(plan_.steps[i].inputs.size());
  }
}

std::vector<PassExecutor::Regularizer> PassExecutor::RegularizersOf(
    const Graph& graph) {
  std::vector<Regularizer> regularizers;
  for (size_t i = 0; i < graph.variable_l2.size(); ++i) {
    if (graph.variable_l2[i] == 0) continue;
    regularizers.push_back({.index = i, .l2 = graph.variable_l2[i]});
  }
  for (size_t i = 0; i < graph.tables.size(); ++i) {
    if (graph.tables[i].l2 == 0) continue;
    regularizers.push_back(
        {.is_table = true, .index = i, .l2 = graph.tables[i].l2});
  }
  return regularizers;
}

absl::Status PassExecutor::Begin(StagedInputs& batch, const Options& options) {
  batch_ = &batch;
  options_ = options;
  RETURN_IF_ERROR(memory_.Reserve(batch.examples()));
  if (options.of_losses != nullptr) {
    RETURN_IF_ERROR(options.of_losses->Reserve(batch.examples()));
  }
  RETURN_IF_ERROR(arguments_.Reserve());
  ASSIGN_OR_RETURN(passes_, layer_passes_.For(batch.examples()));
  if (options.row_gradients) {
    RETURN_IF_ERROR(row_gradients_.Next(batch));
  }
  arguments_.SetSeed(options.seed);
  SetRows();
  RETURN_IF_ERROR(batch.LoadRows());
  return device_.Order(Device::Stream::kCopyIn, Device::Stream::kCompute);
}

void PassExecutor::SetRows() {
  for (size_t i = 0; i < graph_.tables.size(); ++i) {
    TableRows rows = batch_->RowsOf(i);
    if (options_.row_gradients) rows.gradients = row_gradients_.gradients(i);
    arguments_.SetRows(i, rows);
  }
}

absl::Status PassExecutor::RunForward() {
  RETURN_IF_ERROR(arguments_.Load());
  for (size_t i = 0; i < plan_.steps.size(); ++i) {
    const PlanStep& step = plan_.steps[i];
    std::vector<ConstElements>& x = arrays_[i].x;
    for (size_t j = 0; j < x.size(); ++j) {
      const std::optional<PlanTensor>& input = step.inputs[j];
      if (!input) continue;
      x[j] = input->is_input ? ConstElements(batch_->dense(input->index))
                             : memory_.output(input->index);
    }
    RETURN_IF_ERROR(
        passes_[i]->RunForward({.x = x,
                                .y = memory_.output(i),
                                .variables = VariablesOf(step),
                                .rows = RowsOf(step),
                                .training = options_.training,
                                .seed = options_.seed + SeedOffsetOf(i),
                                .stored_seed = StoredSeedOf(i)}))
        << "layer " << step.name;
  }
  return ComputeLosses();
}

// Two dropouts of one pass must not drop the same elements. The multiplier is
// 2^64 over the golden ratio (Knuth), which spreads small numbers.
uint64_t PassExecutor::SeedOffsetOf(size_t step) const {
  return plan_.steps[step].number * 0x9E3779B97F4A7C15;
}

RowsView PassExecutor::RowsOf(const PlanStep& step) const {
  if (!step.lookup) return {};
  const auto [table, id_input] = *step.lookup;
  if (!table) return {.offsets = batch_->offsets(id_input)};
  RowsView rows = batch_->View(*table, id_input);
  rows.table = arguments_.rows(*table);
  return rows;
}

absl::Status PassExecutor::ComputeLosses() {
  for (size_t i = 0; i < losses_.size(); ++i) {
    const PlanOutput& output = plan_.outputs[i];
    float* const gradient = options_.of_losses != nullptr && output.gradient
                                ? options_.of_losses->gradient(*output.gradient)
                                : Elements();
    const Loss::Inputs inputs = {.outputs = memory_.output(output.step),
                                 .labels = batch_->labels(i),
                                 .weights = batch_->weights(i),
                                 .examples = batch_->examples(),
                                 .integers = batch_->integers(i),
                                 .numbers = batch_->numbers(i),
                                 .scratch = memory_.loss_scratch()};
    RETURN_IF_ERROR(
        losses_[i].Compute(device_, inputs, memory_.losses(i), gradient));
  }
  if (!regularizers_.empty()) {
    l2_terms_.clear();
    for (const Regularizer& one : regularizers_) {
      l2_terms_.push_back(TermOf(one));
    }
    RETURN_IF_ERROR(L2Losses(device_, l2_terms_, memory_.terms()));
  }
  return memory_.FetchLosses();
}

// Without the gradient.
L2Term PassExecutor::TermOf(const Regularizer& regularizer) const {
  L2Term term = {.l2 = static_cast<float>(regularizer.l2)};
  if (regularizer.is_table) {
    term.rows = arguments_.rows(regularizer.index);
    term.size = row_gradients_.capacity();
  } else {
    term.w = options_.variables[regularizer.index];
    term.size = graph_.variables[regularizer.index].elements();
  }
  return term;
}

absl::Status PassExecutor::RunBackward(
    BackwardPass& backward, absl::Span<float* const> gradients,
    absl::FunctionRef<absl::Status(const VariableRange&)> written) {
  const Plan& plan = backward.plan();
  RETURN_IF_ERROR(row_gradients_.Clear());
  for (size_t i = 0; i < plan.backward.size(); ++i) {
    const BackwardOp& op = plan.backward[i];
    const int64_t size = plan.buffers[op.to].elements * batch_->examples();
    switch (op.kind) {
      case BackwardOp::Kind::kStep:
        RETURN_IF_ERROR(RunStepBack(backward, i, gradients, written))
            << "layer " << plan.steps[op.step].name;
        break;
      case BackwardOp::Kind::kAdd:
        RETURN_IF_ERROR(Add(device_, backward.gradient(op.from),
                            backward.gradient(op.other), size,
                            AddEpilogue::kNone, backward.gradient(op.to)));
        break;
      case BackwardOp::Kind::kCopy:
        RETURN_IF_ERROR(device_.Copy(Device::Stream::kCompute,
                                     backward.gradient(op.from), size,
                                     backward.gradient(op.to)));
        break;
    }
  }
  return AddRowL2();
}

absl::Status PassExecutor::RunStepBack(
    const BackwardPass& backward, size_t index,
    absl::Span<float* const> gradients,
    absl::FunctionRef<absl::Status(const VariableRange&)> written) {
  const BackwardOp& op = backward.plan().backward[index];
  const PlanStep& step = plan_.steps[op.step];
  Arrays& arrays = arrays_[op.step];
  for (size_t i = 0; i < op.dx.size(); ++i) {
    arrays.dx[i] = op.dx[i] ? backward.gradient(*op.dx[i]) : Elements();
  }
  const LayerPass::Backward pass = {
      .x = arrays.x,
      .y = memory_.output(op.step),
      .dy = backward.gradient(op.from),
      .dx = arrays.dx,
      .variables = VariablesOf(step),
      .gradients = gradients.subspan(step.first_variable, step.num_variables),
      .rows = RowsOf(step),
      .training = options_.training,
      .seed = options_.seed + SeedOffsetOf(op.step),
      .stored_seed = StoredSeedOf(op.step)};
  RETURN_IF_ERROR(passes_[op.step]->RunVariableGradients(pass));
  for (const VariableRange& range : backward.written()[index]) {
    RETURN_IF_ERROR(AddVariableL2(range, gradients));
    RETURN_IF_ERROR(written(range));
  }
  if (!op.has_input_gradients) return absl::OkStatus();
  return passes_[op.step]->RunInputGradients(pass);
}

absl::Status PassExecutor::RunUntrainedChanges(
    absl::Span<float* const> changes) {
  for (size_t i = 0; i < plan_.steps.size(); ++i) {
    const PlanStep& step = plan_.steps[i];
    RETURN_IF_ERROR(passes_[i]->RunUntrainedChanges(
        VariablesOf(step),
        changes.subspan(step.first_variable, step.num_variables)))
        << "layer " << step.name;
  }
  return absl::OkStatus();
}

absl::Status PassExecutor::AddVariableL2(const VariableRange& range,
                                         absl::Span<float* const> gradients) {
  l2_terms_.clear();
  for (const Regularizer& one : regularizers_) {
    if (one.is_table || !range.Contains(one.index)) continue;
    l2_terms_.push_back(TermOf(one));
    l2_terms_.back().gradient = gradients[one.index];
  }
  if (l2_terms_.empty()) return absl::OkStatus();
  return AddL2Gradients(device_, l2_terms_);
}

absl::Status PassExecutor::AddRowL2() {
  l2_terms_.clear();
  for (const Regularizer& one : regularizers_) {
    if (!one.is_table) continue;
    l2_terms_.push_back(TermOf(one));
  }
  if (l2_terms_.empty()) return absl::OkStatus();
  return AddL2Gradients(device_, l2_terms_);
}

}  // namespace parasol
