#include "loop/core/shared_variables.h"

#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "cluster/replica_sum/first_non_finite.h"
#include "loop/core/shared_push.h"
#include "worker/store/outer_gradient.h"

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

absl::Status SharedVariables::StepLocally(float statistics_share) {
  statistics_share_ = statistics_share;
  return BeginIteration(0);
}

absl::Status SharedVariables::Pull() {
  return PullShared(shared_, parameters_);
}

absl::Status SharedVariables::BeginExchange() {
  RETURN_IF_ERROR(Pull());
  begin_.clear();
  for (VariableState* variable : shared_) {
    begin_.push_back(variable->value(0));
    variable->Hold(true);
  }
  return absl::OkStatus();
}

absl::Status SharedVariables::BeginIteration(int64_t iteration) {
  for (const auto& optimizer : registry_.optimizers()) {
    RETURN_IF_ERROR(optimizer->StepLocally(iteration));
  }
  return absl::OkStatus();
}

absl::Status SharedVariables::Commit(bool keeps) {
  const std::vector<float> none = {0};
  TrainingParameters::PushRequest push;
  push.gradients.push_back(
      {.variable = registry_.variables().size() + registry_.kept().size(),
       .values = none});
  RETURN_IF_ERROR(AddDifferences(push));
  std::vector<std::vector<float>> of_kept;
  if (keeps) {
    RETURN_IF_ERROR(AddKept(push, of_kept));
  }
  return parameters_.Push(std::move(push))->Wait();
}

// A variable that has the memory of the begin was not changed. Pushing it
// would have an outer optimizer with momentum move it.
absl::Status SharedVariables::AddDifferences(
    TrainingParameters::PushRequest& push) {
  const std::vector<Tensor> begin = std::exchange(begin_, {});
  differences_.resize(shared_.size());
  for (size_t i = 0; i < begin.size(); ++i) {
    VariableState& variable = *shared_[i];
    variable.Hold(false);
    const absl::Span<const float> end = variable.value(0).values();
    if (end.data() == begin[i].values().data()) continue;
    const size_t place = FirstNonFinite(
        reinterpret_cast<const std::byte*>(end.data()), end.size());
    if (place < end.size()) {
      return absl::OutOfRangeError(absl::StrCat(
          "variable ", variable.spec().name, " is ", end[place], " at element ",
          place,
          " after local steps: nothing was exchanged; a lower learning "
          "rate or clipping may help"));
    }
    WriteOuterGradient(begin[i].values(), end,
                       variable.is_statistic() ? statistics_share_ : 1,
                       differences_[i]);
    push.gradients.push_back(
        {.variable = variable.number(), .values = differences_[i]});
  }
  return absl::OkStatus();
}

// The bytes are small numbers, whose differences are exact.
absl::Status SharedVariables::AddKept(
    TrainingParameters::PushRequest& push,
    std::vector<std::vector<float>>& differences) {
  const size_t first = registry_.variables().size();
  TrainingParameters::PullRequest pull;
  for (const KeptValue& kept : registry_.kept()) {
    differences.emplace_back(kept.bytes.size());
  }
  for (size_t i = 0; i < differences.size(); ++i) {
    pull.targets.push_back(
        {.variable = first + i, .values = absl::MakeSpan(differences[i])});
  }
  if (differences.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(parameters_.Pull(std::move(pull))->Wait());
  for (size_t i = 0; i < differences.size(); ++i) {
    for (size_t j = 0; j < differences[i].size(); ++j) {
      differences[i][j] -=
          static_cast<unsigned char>(registry_.kept()[i].bytes[j]);
    }
    push.gradients.push_back({.variable = first + i, .values = differences[i]});
  }
  return absl::OkStatus();
}

}  // namespace parasol::loop
