#include "loop/core/step_changes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "loop/core/blank_tensor.h"
#include "ml/tape/elementwise.h"

namespace parasol::loop {

StepChanges::StepChanges(std::string name,
                         std::vector<std::shared_ptr<VariableState>> variables)
    : name_(std::move(name)), variables_(std::move(variables)) {
  if (variables_.empty()) return;
  for (const auto& variable : variables_) variable->BeStatistic();
  parts_.resize(variables_.front()->world().num_local());
  weighted_.resize(parts_.size());
}

Tensor StepChanges::Value(int local, size_t variable) const {
  const Tensor& value = variables_[variable]->value(local);
  const Part& part = parts_[local];
  return part.changes.empty() ? value : value - part.changes[variable];
}

absl::Status StepChanges::Add(int local, int64_t examples,
                              absl::Span<const Tensor> changes) {
  Part& part = parts_[local];
  part.has_calls = true;
  if (examples == 0) return absl::OkStatus();
  part.examples += examples;
  if (part.changes.empty()) {
    part.changes.assign(changes.begin(), changes.end());
    return absl::OkStatus();
  }
  for (size_t i = 0; i < changes.size(); ++i) {
    part.changes[i] = part.changes[i] + changes[i];
    RETURN_IF_ERROR(part.changes[i].status()) << name_;
  }
  return absl::OkStatus();
}

absl::Status StepChanges::EndStep(const absl::Status& result) {
  absl::Status status;
  if (result.ok()) status = Apply();
  for (Part& part : parts_) {
    part.has_calls = false;
    part.examples = 0;
    part.changes.clear();
  }
  return status;
}

absl::Status StepChanges::Apply() {
  const auto calls =
      std::count_if(parts_.begin(), parts_.end(),
                    [](const Part& part) { return part.has_calls; });
  if (calls == 0) return absl::OkStatus();
  if (variables_.front()->world().num_replicas() == 1) {
    const Part& part = parts_.front();
    for (size_t i = 0; i < part.changes.size(); ++i) {
      RETURN_IF_ERROR(Subtract(i, part.changes[i].values().data(), 1));
    }
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(AddReplicas());
  const float examples = sum_.front();
  const float* next = sum_.data() + 1;
  for (size_t i = 0; i < variables_.size() && examples > 0; ++i) {
    RETURN_IF_ERROR(Subtract(i, next, examples));
    next += variables_[i]->shape().size();
  }
  return absl::OkStatus();
}

absl::Status StepChanges::AddReplicas() {
  size_t elements = 1;
  for (const auto& variable : variables_) elements += variable->shape().size();
  World& world = variables_.front()->world();
  std::vector<Contribution> contributions;
  for (size_t local = 0; local < parts_.size(); ++local) {
    const Part& part = parts_[local];
    std::vector<float>& weighted = weighted_[local];
    weighted.assign(elements, 0);
    weighted.front() = static_cast<float>(part.examples);
    float* next = weighted.data() + 1;
    for (const Tensor& change : part.changes) {
      for (const float element : change.values()) {
        *next++ = element * static_cast<float>(part.examples);
      }
    }
    contributions.push_back(
        {.replica = world.first_replica() + static_cast<int>(local),
         .values = weighted});
  }
  sum_.resize(elements);
  RETURN_IF_ERROR(
      world.peers().AllReduce(absl::StrCat("the changes of ", name_),
                              std::move(contributions), absl::MakeSpan(sum_)))
      << name_;
  return absl::OkStatus();
}

absl::Status StepChanges::Subtract(size_t variable, const float* sum,
                                   float examples) {
  VariableState& state = *variables_[variable];
  float* change = nullptr;
  const Tensor mean = BlankTensor(state.shape(), &change);
  RETURN_IF_ERROR(mean.status()) << state.spec().name;
  for (int64_t i = 0; i < state.shape().size(); ++i) {
    change[i] = sum[i] / examples;
  }
  // A step of all replicas has ended.
  return state.Apply(VariableState::Change::kSubtract, mean);
}

}  // namespace parasol::loop
