#include "loop/core/model_state.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "ml/tape/tape.h"
#include "worker/pass_seed.h"

namespace parasol::loop {
namespace {

std::string InputNames(const Graph& graph) {
  return absl::StrJoin(graph.inputs, ", ",
                       [](std::string* out, const GraphInput& input) {
                         absl::StrAppend(out, "\"", input.name, "\"");
                       });
}

bool IsChangedByCalls(const VariableSpec& spec) {
  return !spec.trained && !spec.frozen;
}

}  // namespace

ModelState::ModelState(Parts parts, World& world)
    : parts_(std::move(parts)),
      world_(world),
      replicas_(world.num_local()),
      change_of_(parts_.variables.size()) {
  std::vector<std::shared_ptr<VariableState>> changed;
  for (size_t i = 0; i < parts_.variables.size(); ++i) {
    if (!IsChangedByCalls(parts_.graph.variables[i])) continue;
    change_of_[i] = changed.size();
    changed.push_back(parts_.variables[i]);
  }
  changes_ = std::make_shared<StepChanges>(
      absl::StrCat("model \"", parts_.name, "\""), std::move(changed));
  if (changes_->size() == 0) return;
  world_.AtStepEnd([changes = changes_](const absl::Status& result) {
    return changes->EndStep(result);
  });
}

absl::StatusOr<std::shared_ptr<ModelState>> ModelState::Create(Parts parts,
                                                               World& world) {
  std::shared_ptr<ModelState> state(new ModelState(std::move(parts), world));
  const Graph& graph = state->graph();
  const auto dense = std::count_if(
      graph.inputs.begin(), graph.inputs.end(), [](const GraphInput& input) {
        return input.what.kind == LayerInput::Kind::kDense;
      });
  for (int local = 0; local < world.num_local(); ++local) {
    Replica& replica = state->replicas_[local];
    ASSIGN_OR_RETURN(
        replica.operation,
        ModelOperation::Create(state->name(), graph, world.device(local)));
    replica.dense.resize(dense);
    replica.ids.resize(graph.inputs.size() - dense);
  }
  return state;
}

std::vector<Tensor> ModelState::Call(absl::Span<const Tensor> inputs,
                                     bool training,
                                     std::optional<uint64_t> seed) {
  absl::StatusOr<std::vector<Tensor>> outputs = TryCall(inputs, training, seed);
  if (outputs.ok()) return *std::move(outputs);
  return std::vector<Tensor>(graph().output_values.size(),
                             Failed(outputs.status()));
}

absl::StatusOr<std::vector<Tensor>> ModelState::TryCall(
    absl::Span<const Tensor> inputs, bool training,
    std::optional<uint64_t> seed) {
  if (World::Current() != nullptr && World::Current() != &world_) {
    return absl::FailedPreconditionError(
        "it is called in a step of another strategy than the one whose scope "
        "it was made in");
  }
  const int local = world_.current_local();
  Replica& replica = replicas_[std::max(local, 0)];
  RETURN_IF_ERROR(SetInputs(inputs, replica));
  SetValues(local, replica);
  ModelOperation::Arguments arguments = {.inputs = replica.dense,
                                         .ids = replica.ids,
                                         .variables = replica.variables,
                                         .tables = replica.tables,
                                         .training = training};
  if (training) arguments.seed = seed ? *seed : NextSeed(std::max(local, 0));
  ModelOperation::Result result = replica.operation->Call(arguments);
  // Values that nobody reads go back to the memory of tensors.
  replica.variables.clear();
  replica.tables.clear();
  if (training && result.outputs.front().status().ok()) {
    RETURN_IF_ERROR(Change(local, inputs.front().shape()[0], result.changes));
  }
  return std::move(result.outputs);
}

absl::Status ModelState::SetInputs(absl::Span<const Tensor> inputs,
                                   Replica& replica) {
  if (inputs.size() != graph().inputs.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("it is given ", inputs.size(), " inputs, and has ",
                     graph().inputs.size(), ": ", InputNames(graph())));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const GraphInput& input = graph().inputs[i];
    const bool is_dense = input.what.kind == LayerInput::Kind::kDense;
    (is_dense ? replica.dense : replica.ids)[input.index] = inputs[i];
  }
  return absl::OkStatus();
}

void ModelState::SetValues(int local, Replica& replica) const {
  const int from = std::max(local, 0);
  replica.variables.clear();
  replica.tables.clear();
  for (size_t i = 0; i < parts_.variables.size(); ++i) {
    const VariableState& state = *parts_.variables[i];
    replica.variables.push_back(
        change_of_[i] ? changes_->Value(from, *change_of_[i])
                      : Leaf(&state, state.value(from), state.spec().trained));
  }
  for (const auto& table : parts_.tables) {
    replica.tables.push_back(
        Leaf(table.get(), table->value(from), table->spec().trained));
  }
}

absl::Status ModelState::Change(
    int local, int64_t examples,
    const std::vector<ModelOperation::Change>& changes) {
  if (changes.empty()) return absl::OkStatus();
  if (local < 0) {
    for (const ModelOperation::Change& one : changes) {
      RETURN_IF_ERROR(parts_.variables[one.variable]->Apply(
          VariableState::Change::kSubtract, one.change));
    }
    return absl::OkStatus();
  }
  std::vector<Tensor>& list = replicas_[local].changes;
  list.clear();
  for (const ModelOperation::Change& one : changes) {
    list.push_back(one.change);
  }
  const absl::Status added = changes_->Add(local, examples, list);
  list.clear();
  return added;
}

// The first call of a step draws what a job's pass of the step draws.
uint64_t ModelState::NextSeed(int local) {
  const uint64_t step = std::max<int64_t>(world_.steps() - 1, 0);
  const uint64_t pass =
      PassSeed(parts_.seed, step, world_.first_replica() + local);
  const int64_t draw = world_.NextDraw(local);
  return draw == 0 ? pass : PassSeed(pass, draw, 0);
}

Tensor ModelState::RegularizationLoss() {
  const int local = world_.current_local();
  Replica& replica = replicas_[std::max(local, 0)];
  SetValues(local, replica);
  Tensor loss = replica.operation->RegularizationLoss(replica.variables);
  replica.variables.clear();
  replica.tables.clear();
  return loss;
}

Tensor ModelState::Failed(const absl::Status& status) const {
  return Tensor::Error(absl::Status(
      status.code(),
      absl::StrCat("model \"", parts_.name, "\": ", status.message())));
}

}  // namespace parasol::loop
