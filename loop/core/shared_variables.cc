#include "loop/core/shared_variables.h"

#include <utility>

#include "base/status_macros.h"
#include "loop/core/blank_tensor.h"
#include "ml/tape/tensor.h"

namespace parasol::loop {
namespace {

// The values that a pull brings, until the variables have them.
class Pulled {
 public:
  explicit Pulled(TrainingParameters::PullRequest& request)
      : request_(request) {}

  // Adds a variable to the request.
  absl::Status Add(VariableState& variable) {
    float* elements = nullptr;
    Tensor value = BlankTensor(variable.shape(), &elements);
    RETURN_IF_ERROR(value.status()) << variable.spec().name;
    request_.targets.push_back(
        {.variable = variable.number(),
         .values = absl::MakeSpan(elements, value.values().size())});
    values_.emplace_back(&variable, std::move(value));
    return absl::OkStatus();
  }
  // Gives the variables what has come.
  void Take() {
    for (const auto& [variable, value] : values_) variable->SetAll(value);
  }

 private:
  TrainingParameters::PullRequest& request_;
  std::vector<std::pair<VariableState*, Tensor>> values_;
};

absl::Status PullAll(absl::Span<VariableState* const> variables,
                     TrainingParameters& parameters) {
  if (variables.empty()) return absl::OkStatus();
  TrainingParameters::PullRequest request;
  Pulled pulled(request);
  for (VariableState* variable : variables) {
    RETURN_IF_ERROR(pulled.Add(*variable));
  }
  RETURN_IF_ERROR(parameters.Pull(std::move(request))->Wait());
  pulled.Take();
  return absl::OkStatus();
}

}  // namespace

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

absl::Status SharedVariables::Pull() { return PullAll(shared_, parameters_); }

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

absl::Status PushShared(absl::Span<const SharedGradient> gradients,
                        TrainingParameters& parameters) {
  TrainingParameters::PushRequest push;
  TrainingParameters::PullRequest pull;
  Pulled pulled(pull);
  for (const SharedGradient& gradient : gradients) {
    push.gradients.push_back(
        {.variable = gradient.variable->number(), .values = gradient.values});
    RETURN_IF_ERROR(pulled.Add(*gradient.variable));
  }
  const TrainingParameters::PushAndPull both =
      parameters.PushPull(std::move(push), std::move(pull));
  // Both use memory of this function.
  absl::Status result = both.push->Wait();
  result.Update(both.pull->Wait());
  RETURN_IF_ERROR(result);
  pulled.Take();
  return absl::OkStatus();
}

absl::Status JobIsComplete() {
  return absl::FailedPreconditionError(
      "a variable that ps held is changed, but the cluster's job is complete: "
      "change nothing after the last iteration");
}

absl::Status PullShared(VariableState& variable,
                        TrainingParameters& parameters) {
  VariableState* const one = &variable;
  return PullAll(absl::MakeConstSpan(&one, 1), parameters);
}

}  // namespace parasol::loop
