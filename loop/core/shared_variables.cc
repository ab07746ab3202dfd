#include "loop/core/shared_variables.h"

#include <utility>

#include "base/status_macros.h"
#include "loop/core/shared_push.h"

namespace parasol::loop {

SharedVariables::SharedVariables(const Registry& registry,
                                 TrainingParameters& parameters)
    : registry_(registry), parameters_(parameters) {
  for (const auto& optimizer : registry.optimizers()) {
    for (const auto& variable : optimizer->variables()) {
      variable->SetTrainer(optimizer.get());
    }
  }
  for (size_t i = 0; i < registry.variables().size(); ++i) {
    VariableState& variable = *registry.variables()[i];
    if (variable.trainer() == nullptr && variable.has_own_values()) continue;
    variable.Share(i);
    shared_.push_back(&variable);
  }
}

absl::Status SharedVariables::Pull() {
  return PullShared(shared_, parameters_);
}

// The bytes are small numbers, whose differences are exact.
absl::Status SharedVariables::Commit(bool keeps) {
  const size_t first = registry_.variables().size();
  const std::vector<float> none = {0};
  TrainingParameters::PushRequest push;
  push.gradients.push_back(
      {.variable = first + registry_.kept().size(), .values = none});
  std::vector<std::vector<float>> differences;
  if (keeps && !registry_.kept().empty()) {
    TrainingParameters::PullRequest pull;
    for (size_t i = 0; i < registry_.kept().size(); ++i) {
      differences.emplace_back(registry_.kept()[i].bytes.size());
    }
    for (size_t i = 0; i < differences.size(); ++i) {
      pull.targets.push_back(
          {.variable = first + i, .values = absl::MakeSpan(differences[i])});
    }
    RETURN_IF_ERROR(parameters_.Pull(std::move(pull))->Wait());
    for (size_t i = 0; i < differences.size(); ++i) {
      for (size_t j = 0; j < differences[i].size(); ++j) {
        differences[i][j] -=
            static_cast<unsigned char>(registry_.kept()[i].bytes[j]);
      }
      push.gradients.push_back(
          {.variable = first + i, .values = differences[i]});
    }
  }
  return parameters_.Push(std::move(push))->Wait();
}

}  // namespace parasol::loop
