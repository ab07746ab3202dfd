#include "loop/core/program_variables.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
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

}  // namespace

std::vector<VariableSpec> SpecsOf(const Registry& registry) {
  std::vector<VariableSpec> specs;
  for (const auto& variable : registry.variables()) {
    specs.push_back(variable->spec());
  }
  for (const KeptValue& value : registry.kept()) {
    specs.push_back(SpecOf(value));
  }
  return specs;
}

ProgramVariables::ProgramVariables(const Registry& registry)
    : StoredVariables(SpecsOf(registry)),
      registry_(registry),
      places_(specs().size()) {
  const std::shared_ptr<const parasol::Optimizer> none =
      *MakeOptimizer(PlainSubtraction());
  std::vector<std::shared_ptr<const parasol::Optimizer>> rules(specs().size(),
                                                               none);
  for (const auto& optimizer : registry.optimizers()) {
    for (size_t i = 0; i < optimizer->variables().size(); ++i) {
      const auto& all = registry.variables();
      const size_t variable =
          std::find(all.begin(), all.end(), optimizer->variables()[i]) -
          all.begin();
      CHECK_LT(variable, all.size()) << optimizer->name();
      rules[variable] = optimizer->shared_rule(i);
      places_[variable] = {.optimizer = optimizer.get(), .number = i};
    }
  }
  SetOptimizers(std::move(rules));
  kept_.resize(registry.kept().size());
  NoteIteration();
}

void ProgramVariables::NoteIteration() {
  for (size_t i = 0; i < kept_.size(); ++i) {
    const absl::Span<char> bytes = registry_.kept()[i].bytes;
    kept_[i].assign(bytes.begin(), bytes.end());
  }
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
    return place.optimizer->slot(place.number, array - 1);
  }
  const Tensor value = variables[variable]->ReadSaved();
  RETURN_IF_ERROR(value.status());
  read_.assign(value.values().begin(), value.values().end());
  return read_;
}

absl::Status ProgramVariables::Write(size_t variable, int array,
                                     absl::Span<const float> elements) {
  const auto& variables = registry_.variables();
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

job::Job JobOf(const Registry& registry, const std::string& name,
               uint64_t seed) {
  job::Job job;
  job.set_name(name);
  job.set_seed(seed);
  if (!registry.optimizers().empty()) {
    *job.mutable_optimizer() = registry.optimizers().front()->spec();
  }
  return job;
}

}  // namespace parasol::loop
