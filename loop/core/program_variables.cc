#include "loop/core/program_variables.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "loop/peers/local_steps.h"
#include "ml/optimizer/assigned/optimizer_of.h"
#include "ml/optimizer/assigned/plain_subtraction.h"
#include "storage/shard_entry.h"

namespace parasol::loop {
namespace {

VariableSpec SpecOf(const KeptValue& value) {
  VariableSpec spec = {.name = absl::StrCat("program/", value.name),
                       .shape = {static_cast<int64_t>(value.bytes.size())},
                       .trained = false};
  spec.initializer.mutable_zeros();
  return spec;
}

VariableSpec SpecOfIterations() {
  VariableSpec spec = {
      .name = std::string(kIterationsVariable), .shape = {1}, .trained = false};
  spec.initializer.mutable_zeros();
  return spec;
}

// Returns the optimizer that trains a variable, the last one; null: none does.
const OptimizerState* OptimizerOf(const VariableState& variable,
                                  const Registry& registry) {
  const OptimizerState* found = nullptr;
  for (const auto& optimizer : registry.optimizers()) {
    for (const auto& trained : optimizer->variables()) {
      if (trained.get() == &variable) found = optimizer.get();
    }
  }
  return found;
}

void AddTo(job::Layer& layer, const VariableSpec& spec) {
  job::CustomVariable& variable = *layer.mutable_custom()->add_variable();
  variable.set_name(spec.name);
  variable.mutable_shape()->Assign(spec.shape.begin(), spec.shape.end());
  *variable.mutable_initializer() = spec.initializer;
  variable.set_trainable(spec.trained);
}

job::Layer& AddLayer(const std::string& name, job::Model& model) {
  job::Layer& layer = *model.add_layer();
  layer.set_name(name);
  layer.mutable_custom()->set_type(std::string(kProgramLayer));
  layer.mutable_custom()->add_output_shape(1);
  return layer;
}

}  // namespace

std::vector<VariableSpec> SpecsOf(const Registry& registry,
                                  bool has_local_steps) {
  std::vector<VariableSpec> specs;
  for (const auto& variable : registry.variables()) {
    VariableSpec& spec = specs.emplace_back(variable->spec());
    spec.trained = OptimizerOf(*variable, registry) != nullptr;
    if (has_local_steps) spec.learning_rate_multiplier = 1;
  }
  for (const KeptValue& value : registry.kept()) {
    specs.push_back(SpecOf(value));
  }
  specs.push_back(SpecOfIterations());
  return specs;
}

ProgramVariables::ProgramVariables(const Registry& registry,
                                   const job::LocalSteps* local)
    : StoredVariables(SpecsOf(registry, local != nullptr)),
      registry_(registry),
      places_(specs().size()) {
  const std::shared_ptr<const parasol::Optimizer> none =
      *MakeOptimizer(PlainSubtraction());
  std::vector<std::shared_ptr<const parasol::Optimizer>> rules(specs().size(),
                                                               none);
  if (local == nullptr) TakeOptimizers(rules);
  for (size_t i = 0; i < specs().size() && local != nullptr; ++i) {
    if (!specs()[i].trained) continue;
    // The outer optimizer was checked.
    rules[i] = *MakeVariableOptimizer(
        VariableOptimizerOf(local->outer(), specs()[i].name, 1));
  }
  SetOptimizers(std::move(rules));
  kept_.resize(registry.kept().size());
  NoteKept();
}

void ProgramVariables::TakeOptimizers(
    std::vector<std::shared_ptr<const parasol::Optimizer>>& rules) {
  for (const auto& optimizer : registry_.optimizers()) {
    for (size_t i = 0; i < optimizer->variables().size(); ++i) {
      const auto& all = registry_.variables();
      const size_t variable =
          std::find(all.begin(), all.end(), optimizer->variables()[i]) -
          all.begin();
      CHECK_LT(variable, all.size()) << optimizer->name();
      rules[variable] = optimizer->shared_rule(i);
      places_[variable] = {.optimizer = optimizer.get(), .number = i};
    }
  }
}

void ProgramVariables::NoteKept() {
  for (size_t i = 0; i < kept_.size(); ++i) {
    const absl::Span<char> bytes = registry_.kept()[i].bytes;
    kept_[i].assign(bytes.begin(), bytes.end());
  }
}

void ProgramVariables::NoteIteration() {
  NoteKept();
  for (size_t i = 0; i < places_.size(); ++i) {
    if (places_[i].optimizer == nullptr) continue;
    SetUpdates(i, places_[i].optimizer->iterations());
  }
}

void ProgramVariables::TakeUpdates() {
  for (size_t i = 0; i < places_.size(); ++i) {
    if (places_[i].optimizer == nullptr) continue;
    places_[i].optimizer->SetIterations(updates()[i]);
  }
}

absl::StatusOr<absl::Span<const float>> ProgramVariables::Read(size_t variable,
                                                               int array) {
  const auto& variables = registry_.variables();
  if (variable + 1 == specs().size()) {
    read_.assign(1, 0);
    return read_;
  }
  if (variable >= variables.size()) {
    const std::string& kept = kept_[variable - variables.size()];
    read_.assign(kept.size(), 0);
    for (size_t i = 0; i < read_.size(); ++i) {
      read_[i] = static_cast<unsigned char>(kept[i]);
    }
    return read_;
  }
  if (array != kValueArray) {
    const Place& place = places_[variable];
    if (place.optimizer != nullptr) {
      return place.optimizer->slot(place.number, array - 1);
    }
    read_.assign(specs()[variable].elements(),
                 optimizer(variable).InitialSlotValue(array - 1));
    return read_;
  }
  const Tensor value = variables[variable]->ReadSaved();
  RETURN_IF_ERROR(value.status());
  read_.assign(value.values().begin(), value.values().end());
  return read_;
}

absl::Status ProgramVariables::Write(size_t variable, int array,
                                     absl::Span<const float> elements) {
  const auto& variables = registry_.variables();
  if (variable + 1 == specs().size()) return absl::OkStatus();
  if (variable >= variables.size()) {
    const KeptValue& kept = registry_.kept()[variable - variables.size()];
    CHECK_EQ(elements.size(), kept.bytes.size());
    for (size_t i = 0; i < elements.size(); ++i) {
      kept.bytes[i] =
          static_cast<char>(static_cast<unsigned char>(elements[i]));
    }
    kept_[variable - variables.size()].assign(kept.bytes.begin(),
                                              kept.bytes.end());
    return absl::OkStatus();
  }
  if (array != kValueArray) {
    const Place& place = places_[variable];
    if (place.optimizer == nullptr) return absl::OkStatus();
    const absl::Span<float> slot =
        place.optimizer->slot(place.number, array - 1);
    CHECK_EQ(elements.size(), slot.size());
    std::copy(elements.begin(), elements.end(), slot.begin());
    return absl::OkStatus();
  }
  VariableState& state = *variables[variable];
  const Tensor value = Tensor::Of(elements, state.shape());
  RETURN_IF_ERROR(value.status());
  state.Restore(value);
  return absl::OkStatus();
}

job::Job JobOf(const Registry& registry, const std::string& name, uint64_t seed,
               const job::LocalSteps* local) {
  job::Job job;
  job.set_name(name);
  job.set_seed(seed);
  std::map<const OptimizerState*, job::Layer*> layers;
  for (const auto& optimizer : registry.optimizers()) {
    job::Layer& layer = AddLayer(optimizer->name(), *job.mutable_model());
    layers[optimizer.get()] = &layer;
    if (layers.size() == 1) {
      *job.mutable_optimizer() = optimizer->spec();
    } else {
      *layer.mutable_optimizer() = optimizer->spec();
    }
  }
  const std::vector<VariableSpec> specs = SpecsOf(registry);
  job::Layer others;
  for (size_t i = 0; i < specs.size(); ++i) {
    const OptimizerState* const optimizer =
        specs[i].trained ? OptimizerOf(*registry.variables()[i], registry)
                         : nullptr;
    AddTo(optimizer == nullptr ? others : *layers[optimizer], specs[i]);
  }
  *AddLayer("program", *job.mutable_model())
       .mutable_custom()
       ->mutable_variable() = others.custom().variable();
  if (local != nullptr) UseLocalSteps(*local, job);
  return job;
}

}  // namespace parasol::loop
