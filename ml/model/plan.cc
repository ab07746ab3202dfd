#include "ml/model/plan.h"

#include <algorithm>
#include <map>
#include <utility>

#include "ml/layer/conversion.h"

namespace parasol {
namespace {

// Number of elements of each dense input for one example.
std::vector<int64_t> ElementsOfInputs(const Graph& graph) {
  std::vector<int64_t> elements;
  for (const GraphInput& input : graph.inputs) {
    if (input.what.kind != LayerInput::Kind::kDense) continue;
    elements.resize(std::max(elements.size(), input.index + 1));
    elements[input.index] = ElementsOf(input.what.shape);
  }
  return elements;
}

// Values of the graph as tensors of the plan.
class ForwardPlanner {
 public:
  // `joins_sums`: sums are computed by their terms' producers.
  ForwardPlanner(const Graph& graph, const PlannedGradients& gradients,
                 bool joins_sums)
      : graph_(graph),
        gradients_(gradients),
        joins_sums_(joins_sums),
        readers_(graph.num_values()) {
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
      step.changes_variables |= gradients_.variables[step.first_variable + i];
    }
    for (const size_t value : node.inputs) {
      step.inputs.push_back(tensors_[value]);
      if (tensors_[value].has_value()) continue;
      step.lookup = {.table = node.table,
                     .id_input = graph_.inputs[value].index};
      step.changes_rows = node.table && gradients_.tables[*node.table];
    }
    return step;
  }

  const Graph& graph_;
  const PlannedGradients& gradients_;
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
  // `inputs`: number of elements of each dense input for one example.
  explicit EdgePlanner(const std::vector<int64_t>& inputs)
      : input_elements_(inputs) {}

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

  const std::vector<int64_t>& input_elements_;
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
  // `inputs`: number of elements of each dense input for one example.
  BackwardPlanner(const PlannedGradients& gradients,
                  const std::vector<int64_t>& inputs, Plan& plan)
      : gradients_(gradients),
        inputs_(inputs),
        plan_(plan),
        is_wanted_(plan.steps.size()),
        of_(plan.steps.size() + inputs.size()) {}

  void Run() {
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      is_wanted_[i] = NeedsGradient(plan_.steps[i]);
    }
    // All of them are written before the first operation.
    std::vector<PlanOutput*> outputs;
    for (size_t i = 0; i < plan_.outputs.size(); ++i) {
      if (gradients_.outputs[i]) outputs.push_back(&plan_.outputs[i]);
    }
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
    for (size_t i = 0; i < inputs_.size(); ++i) {
      plan_.input_gradients.push_back(of_[plan_.steps.size() + i]);
      if (!plan_.input_gradients[i].has_value()) continue;
      plan_.buffers[*plan_.input_gradients[i]].last_op = plan_.backward.size();
    }
  }

 private:
  // Tensors are numbered: first the steps' outputs, then the dense inputs.
  size_t NumberOf(const PlanTensor& tensor) const {
    return tensor.index + (tensor.is_input ? plan_.steps.size() : 0);
  }

  // A step below which no gradient is wanted needs none.
  bool NeedsGradient(const PlanStep& step) const {
    const auto wants = [this](const auto& input) { return Wants(input); };
    return step.changes_variables || step.changes_rows ||
           std::any_of(step.inputs.begin(), step.inputs.end(), wants);
  }
  bool Wants(const std::optional<PlanTensor>& input) const {
    if (!input) return false;
    return input->is_input ? gradients_.inputs[input->index]
                           : is_wanted_[input->index];
  }

  void PlanStepBack(size_t index) {
    const PlanStep& step = plan_.steps[index];
    BackwardOp op = {.step = index, .from = TakeGradient(index)};
    op.dx.resize(step.inputs.size());
    op.has_input_gradients = step.changes_rows;
    // To the tensor of which number, and the buffer.
    std::vector<std::pair<size_t, size_t>> given;
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      if (!Wants(step.inputs[i])) continue;
      const size_t to = NumberOf(*step.inputs[i]);
      const bool passes_on = step.layer->PassesGradientOn(i);
      const size_t buffer = passes_on ? op.from : NewBufferFor(to);
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
    const size_t copy = NewBufferFor(index);
    Append({.kind = BackwardOp::Kind::kCopy, .from = buffer, .to = copy});
    return copy;
  }

  // A gradient by the tensor of number `tensor`, in `buffer`, of which one use
  // is this.
  void Give(size_t tensor, size_t buffer) {
    if (!of_[tensor].has_value()) {
      of_[tensor] = buffer;
      return;
    }
    const size_t earlier = *of_[tensor];
    size_t to = buffer;
    if (users_[buffer] > 1) {
      to = users_[earlier] > 1 ? NewBufferFor(tensor) : earlier;
    }
    Append({.kind = BackwardOp::Kind::kAdd,
            .from = earlier,
            .other = buffer,
            .to = to});
    --users_[earlier];
    --users_[buffer];
    ++users_[to];
    of_[tensor] = to;
  }

  // A buffer for the gradient by the tensor of this number.
  size_t NewBufferFor(size_t tensor) {
    if (tensor >= plan_.steps.size()) {
      return NewBuffer(inputs_[tensor - plan_.steps.size()],
                       EdgeType::kFloat32);
    }
    return NewBuffer(plan_.steps[tensor].outputs, plan_.steps[tensor].type);
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

  const PlannedGradients& gradients_;
  const std::vector<int64_t>& inputs_;
  Plan& plan_;
  std::vector<bool> is_wanted_;  // indexed by step
  // Indexed by the tensor's number: the buffer of the gradient by it.
  std::vector<std::optional<size_t>> of_;
  std::vector<int> users_;  // indexed by buffer: number of dys in it
};

}  // namespace

PlannedGradients GradientsOfTraining(const Graph& graph) {
  PlannedGradients gradients = {
      .inputs = std::vector<bool>(ElementsOfInputs(graph).size())};
  for (const OutputSpec& output : graph.outputs) {
    gradients.outputs.push_back(output.weight > 0);
  }
  for (const VariableSpec& variable : graph.variables) {
    gradients.variables.push_back(!variable.frozen);
  }
  for (const GraphTable& table : graph.tables) {
    gradients.tables.push_back(!table.frozen);
  }
  return gradients;
}

Plan MakePlan(const Graph& graph, EdgeType edges) {
  return MakePlan(graph, GradientsOfTraining(graph), edges);
}

Plan MakePlan(const Graph& graph, const PlannedGradients& gradients,
              EdgeType edges) {
  Plan plan;
  const std::vector<int64_t> inputs = ElementsOfInputs(graph);
  // A sum whose terms have two types would make float32 of what is bfloat16.
  ForwardPlanner(graph, gradients,
                 /*joins_sums=*/edges == EdgeType::kFloat32)
      .PlanInto(plan);
  if (edges == EdgeType::kBfloat16) EdgePlanner(inputs).Run(plan);
  BackwardPlanner(gradients, inputs, plan).Run();
  return plan;
}

}  // namespace parasol
