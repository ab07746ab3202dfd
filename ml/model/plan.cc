#include "ml/model/plan.h"

#include <algorithm>
#include <map>
#include <utility>

#include "ml/layer/conversion.h"

namespace parasol {
namespace {

// Values of the graph as tensors of the plan.
class ForwardPlanner {
 public:
  // `joins_sums`: sums are computed by their terms' producers.
  ForwardPlanner(const Graph& graph, bool joins_sums)
      : graph_(graph), joins_sums_(joins_sums), readers_(graph.num_values()) {
    for (const GraphNode& node : graph_.nodes) {
      for (const size_t value : node.inputs) ++readers_[value];
    }
    for (const size_t value : graph_.output_values) ++readers_[value];
    for (const GraphInput& input : graph_.inputs) {
      const bool is_dense = input.what.kind == LayerInput::Kind::kDense;
      tensors_.push_back(is_dense
                             ? std::make_optional<PlanTensor>(
                                   {.is_input = true, .index = input.index})
                             : std::nullopt);
    }
  }

  void PlanInto(Plan& plan) {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const GraphNode& node = graph_.nodes[i];
      if (node.layer->IsView() || Join(node, plan)) {
        tensors_.push_back(tensors_[node.inputs[0]]);
      } else if (const std::optional<PlanTensor> sum = JoinSum(node, plan)) {
        tensors_.push_back(sum);
        // It keeps its number: the seeds of the steps behind it depend on that.
        ++next_number_;
      } else {
        plan.steps.push_back(StepOf(node, next_number_++));
        tensors_.push_back(PlanTensor{.index = plan.steps.size() - 1});
      }
    }
    for (const size_t value : graph_.output_values) {
      plan.outputs.push_back({.step = tensors_[value]->index,
                              .elements = graph_.ElementsOfValue(value)});
    }
  }

 private:
  // Lets the producer of what `node` reads compute it too, if it is a relu and
  // nobody else reads that. False: it can't.
  bool Join(const GraphNode& node, Plan& plan) const {
    if (!node.layer->IsRelu()) return false;
    PlanStep* const step = OnlyProducerOf(node.inputs[0], plan);
    if (step == nullptr) return false;
    std::shared_ptr<const Layer> joined = step->layer->WithRelu();
    if (joined == nullptr) return false;
    step->layer = std::move(joined);
    return true;
  }

  // Lets the producer of one of the two terms that `node` adds compute the sum
  // too, if nobody else reads that term, and the other one is there before.
  // Returns the sum, or nullopt.
  std::optional<PlanTensor> JoinSum(const GraphNode& node, Plan& plan) const {
    if (!joins_sums_ || !node.layer->IsSum() || node.inputs.size() != 2) {
      return std::nullopt;
    }
    for (const size_t i : {0, 1}) {
      const std::optional<PlanTensor>& sum = tensors_[node.inputs[i]];
      const std::optional<PlanTensor>& term = tensors_[node.inputs[1 - i]];
      PlanStep* const step = OnlyProducerOf(node.inputs[i], plan);
      if (step == nullptr) continue;
      if (!term->is_input && term->index >= sum->index) continue;
      std::shared_ptr<const Layer> joined = step->layer->WithTerm();
      if (joined == nullptr) continue;
      step->layer = std::move(joined);
      step->inputs.push_back(term);
      return sum;
    }
    return std::nullopt;
  }

  // Returns the step whose output, perhaps seen through views, is `value` and
  // is read once; null if there is none.
  PlanStep* OnlyProducerOf(size_t value, Plan& plan) const {
    const GraphNode* producer = graph_.Producer(value);
    while (producer != nullptr && producer->layer->IsView() &&
           readers_[value] == 1) {
      value = producer->inputs[0];
      producer = graph_.Producer(value);
    }
    if (producer == nullptr || readers_[value] != 1) return nullptr;
    if (producer->layer->IsView()) return nullptr;
    return &plan.steps[tensors_[value]->index];
  }

  PlanStep StepOf(const GraphNode& node, size_t number) const {
    PlanStep step = {.name = node.name,
                     .layer = node.layer,
                     .outputs = ElementsOf(node.layer->output_shape()),
                     .number = number,
                     .first_variable = node.first_variable,
                     .num_variables = node.layer->variables().size()};
    for (size_t i = 0; i < step.num_variables; ++i) {
      step.changes_variables |=
          !graph_.variables[step.first_variable + i].frozen;
    }
    for (const size_t value : node.inputs) {
      step.inputs.push_back(tensors_[value]);
      if (tensors_[value].has_value() || node.layer->table().empty()) continue;
      step.lookup = {.table = TableNamed(node.layer->table()),
                     .id_input = graph_.inputs[value].index};
      step.changes_rows = !graph_.tables[step.lookup->table].frozen;
    }
    return step;
  }

  size_t TableNamed(const std::string& name) const {
    size_t table = 0;
    while (graph_.tables[table].name != name) ++table;
    return table;
  }

  const Graph& graph_;
  const bool joins_sums_;
  size_t next_number_ = 0;
  std::vector<int> readers_;  // indexed by value
  // Tensors indexed by value; nullopt: ids.
  std::vector<std::optional<PlanTensor>> tensors_;
};

// Gives each tensor its type, for devices whose edge_type() is bfloat16: the
// one place where that is decided. A step is bfloat16 as its layer's
// bfloat16_use() says, so it depends on the graph alone, and neither on the
// batch nor on what libraries the machine has. Inputs and outputs of the model
// are float32. Where a step reads a tensor of the other type, a step that
// converts it comes between them, one for all readers of the tensor.
class EdgePlanner {
 public:
  explicit EdgePlanner(const Graph& graph) {
    for (const GraphInput& input : graph.inputs) {
      if (input.what.kind != LayerInput::Kind::kDense) continue;
      const size_t needed = input.index + 1;
      if (input_elements_.size() < needed) input_elements_.resize(needed);
      input_elements_[input.index] = ElementsOf(input.what.shape);
    }
  }

  void Run(Plan& plan) {
    for (PlanStep& step : plan.steps) Move(std::move(step));
    for (PlanOutput& output : plan.outputs) {
      output.step = Float32OutputOf(output.step);
    }
    plan.steps = std::move(steps_);
  }

 private:
  void Move(PlanStep step) {
    for (std::optional<PlanTensor>& input : step.inputs) {
      if (input && !input->is_input) input->index = places_[input->index];
    }
    step.type = TypeFor(step);
    for (std::optional<PlanTensor>& input : step.inputs) {
      if (input) input = Converted(*input, step.type, step);
    }
    places_.push_back(steps_.size());
    steps_.push_back(std::move(step));
  }

  // Returns the place of a step with a float32 output: of the step that was the
  // `step`-th one, or of a conversion of its output.
  size_t Float32OutputOf(size_t step) {
    const size_t place = places_[step];
    const PlanStep& producer = steps_[place];
    return Converted({.index = place}, EdgeType::kFloat32, producer).index;
  }

  EdgeType TypeOf(const PlanTensor& tensor) const {
    return tensor.is_input ? EdgeType::kFloat32 : steps_[tensor.index].type;
  }

  EdgeType TypeFor(const PlanStep& step) const {
    const auto is_bfloat16 = [this](const std::optional<PlanTensor>& input) {
      return input && TypeOf(*input) == EdgeType::kBfloat16;
    };
    switch (step.layer->bfloat16_use()) {
      case Bfloat16Use::kAlways:
        return EdgeType::kBfloat16;
      case Bfloat16Use::kIfInputsAre:
        return std::all_of(step.inputs.begin(), step.inputs.end(), is_bfloat16)
                   ? EdgeType::kBfloat16
                   : EdgeType::kFloat32;
      case Bfloat16Use::kNever:
        break;
    }
    return EdgeType::kFloat32;
  }

  // Returns the tensor with elements of `type`. A conversion that it takes
  // bears the name of the step that it is for.
  PlanTensor Converted(const PlanTensor& tensor, EdgeType type,
                       const PlanStep& user) {
    if (TypeOf(tensor) == type) return tensor;
    const auto [known, is_new] = converted_.try_emplace(
        {tensor.is_input, tensor.index}, PlanTensor{.index = steps_.size()});
    if (!is_new) return known->second;
    const int64_t elements = tensor.is_input ? input_elements_[tensor.index]
                                             : steps_[tensor.index].outputs;
    PlanStep step = {.name = user.name,
                     .layer = std::make_shared<Conversion>(elements),
                     .inputs = {tensor},
                     .outputs = elements,
                     .type = type,
                     .number = user.number,
                     .first_variable = user.first_variable};
    steps_.push_back(std::move(step));
    return known->second;
  }

  std::vector<int64_t> input_elements_;  // of one example, by dense input
  std::vector<PlanStep> steps_;
  std::vector<size_t> places_;  // in steps_, indexed by the step's old place
  // Tensors in the other type, by PlanTensor::is_input and index.
  std::map<std::pair<bool, size_t>, PlanTensor> converted_;
};

// Goes through the steps from the last one to the first one. A buffer holds the
// gradients of as many tensors as refer to it: layers that only pass theirs on
// share it. The second gradient of a tensor is added to the first one, where
// one of the two buffers is nobody else's in place.
class BackwardPlanner {
 public:
  explicit BackwardPlanner(Plan& plan)
      : plan_(plan), is_wanted_(plan.steps.size()), of_(plan.steps.size()) {}

  // `outputs`: those that training goes by.
  void Run(const std::vector<PlanOutput*>& outputs) {
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      is_wanted_[i] = NeedsGradient(plan_.steps[i]);
    }
    // Losses write all of them before the first operation.
    for (PlanOutput* const output : outputs) {
      output->gradient = NewBuffer(output->elements, EdgeType::kFloat32);
      ++users_[*output->gradient];
    }
    for (const PlanOutput* const output : outputs) {
      Give(output->step, *output->gradient);
    }
    for (size_t i = plan_.steps.size(); i-- > 0;) {
      if (is_wanted_[i] && of_[i].has_value()) PlanStepBack(i);
    }
  }

 private:
  // A step below which there is nothing to train needs none.
  bool NeedsGradient(const PlanStep& step) const {
    const auto wants = [this](const auto& input) { return Wants(input); };
    return step.changes_variables || step.changes_rows ||
           std::any_of(step.inputs.begin(), step.inputs.end(), wants);
  }
  bool Wants(const std::optional<PlanTensor>& input) const {
    return input && !input->is_input && is_wanted_[input->index];
  }

  void PlanStepBack(size_t index) {
    const PlanStep& step = plan_.steps[index];
    BackwardOp op = {.step = index, .from = TakeGradient(index)};
    op.dx.resize(step.inputs.size());
    op.has_input_gradients = step.changes_rows;
    std::vector<std::pair<size_t, size_t>> given;  // to which step, the buffer
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      if (!Wants(step.inputs[i])) continue;
      const size_t to = step.inputs[i]->index;
      const bool passes_on = step.layer->PassesGradientOn(i);
      const size_t buffer = passes_on ? op.from : NewBufferFor(plan_.steps[to]);
      if (!passes_on) op.dx[i] = buffer;
      op.has_input_gradients = op.has_input_gradients || !passes_on;
      ++users_[buffer];
      given.emplace_back(to, buffer);
    }
    Append(std::move(op));
    for (const auto& [to, buffer] : given) Give(to, buffer);
  }

  // The buffer of the gradient by step `index`'s output, which nobody else has
  // if the step changes it.
  size_t TakeGradient(size_t index) {
    const size_t buffer = *of_[index];
    --users_[buffer];
    if (users_[buffer] == 0 ||
        plan_.steps[index].layer->KeepsOutputGradient()) {
      return buffer;
    }
    const size_t copy = NewBufferFor(plan_.steps[index]);
    Append({.kind = BackwardOp::Kind::kCopy, .from = buffer, .to = copy});
    return copy;
  }

  // A gradient by the output of `step`, in `buffer`, of which one use is this.
  void Give(size_t step, size_t buffer) {
    if (!of_[step].has_value()) {
      of_[step] = buffer;
      return;
    }
    const size_t earlier = *of_[step];
    size_t to = buffer;
    if (users_[buffer] > 1) {
      to = users_[earlier] > 1 ? NewBufferFor(plan_.steps[step]) : earlier;
    }
    Append({.kind = BackwardOp::Kind::kAdd,
            .from = earlier,
            .other = buffer,
            .to = to});
    --users_[earlier];
    --users_[buffer];
    ++users_[to];
    of_[step] = to;
  }

  // A buffer for the gradient by the step's output.
  size_t NewBufferFor(const PlanStep& step) {
    return NewBuffer(step.outputs, step.type);
  }
  size_t NewBuffer(int64_t elements, EdgeType type) {
    plan_.buffers.push_back({.elements = elements,
                             .type = type,
                             .first_op = plan_.backward.size(),
                             .last_op = plan_.backward.size()});
    users_.push_back(0);
    return plan_.buffers.size() - 1;
  }

  void Append(BackwardOp op) {
    const auto use = [this](size_t buffer) {
      plan_.buffers[buffer].last_op = plan_.backward.size();
    };
    use(op.from);
    if (op.kind == BackwardOp::Kind::kAdd) use(op.other);
    if (op.kind != BackwardOp::Kind::kStep) use(op.to);
    for (const std::optional<size_t>& dx : op.dx) {
      if (dx) use(*dx);
    }
    plan_.backward.push_back(std::move(op));
  }

  Plan& plan_;
  std::vector<bool> is_wanted_;  // indexed by step
  // Indexed by step: the buffer of its dy.
  std::vector<std::optional<size_t>> of_;
  std::vector<int> users_;  // indexed by buffer: number of dys in it
};

}  // namespace

Plan MakePlan(const Graph& graph, EdgeType edges) {
  Plan plan;
  // A sum whose terms have two types would make float32 of what is bfloat16.
  ForwardPlanner(graph, /*joins_sums=*/edges == EdgeType::kFloat32)
      .PlanInto(plan);
  if (edges == EdgeType::kBfloat16) EdgePlanner(graph).Run(plan);
  std::vector<PlanOutput*> outputs;
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    if (graph.outputs[i].weight > 0) outputs.push_back(&plan.outputs[i]);
  }
  BackwardPlanner(plan).Run(outputs);
  return plan;
}

}  // namespace parasol
