#include "loop/core/optimizer_state.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cluster/replica_sum/first_non_finite.h"
#include "loop/core/blank_tensor.h"
#include "ml/optimizer/assigned/optimizer_of.h"
#include "ml/optimizer/clip.h"

namespace parasol::loop {

absl::StatusOr<std::shared_ptr<OptimizerState>> OptimizerState::Create(
    std::string name, const job::Optimizer& spec,
    std::vector<std::shared_ptr<VariableState>> variables) {
  if (variables.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("optimizer ", name, " has no variable"));
  }
  RETURN_IF_ERROR(CheckClipping(spec)) << "optimizer " << name;
  std::shared_ptr<OptimizerState> state(
      new OptimizerState(std::move(name), spec, std::move(variables)));
  std::map<std::string, std::shared_ptr<const parasol::Optimizer>> distinct;
  for (const auto& variable : state->variables_) {
    const VariableSpec& of = variable->spec();
    if (!of.trained) {
      return absl::InvalidArgumentError(absl::StrCat("optimizer ", state->name_,
                                                     ": variable ", of.name,
                                                     " is not trainable"));
    }
    const job::Optimizer own =
        VariableOptimizerOf(spec, of.name, of.learning_rate_multiplier);
    auto& rule = distinct[own.SerializeAsString()];
    if (rule == nullptr) {
      ASSIGN_OR_RETURN(rule, MakeVariableOptimizer(own),
                       _ << "optimizer " << state->name_);
      RETURN_IF_ERROR(rule->CheckCode()) << "optimizer " << state->name_;
    }
    state->rules_.push_back(rule);
    auto& slots = state->slots_.emplace_back();
    for (size_t slot = 0; slot < rule->slot_names().size(); ++slot) {
      slots.emplace_back(of.elements(), rule->InitialSlotValue(slot));
    }
  }
  state->sums_.resize(state->variables_.size());
  return state;
}

absl::Status OptimizerState::Apply(Gradients gradients) {
  RETURN_IF_ERROR(CheckFits(gradients));
  const int local = world().current_local();
  if (local < 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "optimizer ", name_,
        " is given gradients outside of a step: call it in what Run() runs"));
  }
  return world().Meet(
      local, absl::StrCat("the sum of gradients of optimizer ", name_),
      &gradients, [&](absl::Span<const void* const> all) {
        std::vector<Gradients> brought;
        for (const void* one : all) {
          brought.push_back(*static_cast<const Gradients*>(one));
        }
        return ApplyAll(brought);
      });
}

absl::Status OptimizerState::CheckFits(Gradients gradients) const {
  if (gradients.size() != variables_.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "optimizer ", name_, " has ", variables_.size(),
        " variables, and is given ", gradients.size(), " gradients"));
  }
  bool has_any = false;
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].connected()) continue;
    has_any = true;
    const VariableState& variable = *variables_[i];
    const Tensor& gradient = gradients[i];
    RETURN_IF_ERROR(gradient.status())
        << "gradient of " << variable.spec().name;
    if (gradient.dtype() != DType::kFloat32 ||
        gradient.shape() != variable.shape()) {
      return absl::InvalidArgumentError(
          absl::StrCat("gradient of ", variable.spec().name, " has the shape ",
                       gradient.shape().ToString(), ", and the variable ",
                       variable.shape().ToString()));
    }
  }
  if (has_any) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "optimizer ", name_,
      " is given no gradient: none of its variables, of "
      "which the first is ",
      variables_[0]->spec().name, ", was reached from the target"));
}

absl::Status OptimizerState::ApplyAll(absl::Span<const Gradients> brought) {
  std::vector<size_t> updated;
  std::vector<absl::Span<float>> sums;
  for (size_t i = 0; i < variables_.size(); ++i) {
    for (const Gradients& one : brought) {
      if (one[i].connected() != brought[0][i].connected()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "variable ", variables_[i]->spec().name,
            " has a gradient on some replicas and none on others"));
      }
    }
    if (!brought[0][i].connected()) continue;
    updated.push_back(i);
    sums.push_back(BeginSum(i, brought));
  }
  RETURN_IF_ERROR(world().peers().Await()) << "optimizer " << name_;
  for (size_t i = 0; i < updated.size(); ++i) {
    RETURN_IF_ERROR(CheckFinite(updated[i], sums[i]));
  }
  Clip(sums);
  for (size_t i = 0; i < updated.size(); ++i) {
    RETURN_IF_ERROR(Update(updated[i], sums[i]));
  }
  ++iterations_;
  return absl::OkStatus();
}

absl::Span<float> OptimizerState::BeginSum(
    size_t variable, absl::Span<const Gradients> brought) {
  std::vector<Contribution> contributions;
  for (size_t local = 0; local < brought.size(); ++local) {
    contributions.push_back(
        {.replica = world().first_replica() + static_cast<int>(local),
         .values = brought[local][variable].values()});
  }
  std::vector<float>& sum = sums_[variable];
  sum.resize(contributions.front().values.size());
  world().peers().BeginAllReduce(
      absl::StrCat("gradient of ", variables_[variable]->spec().name),
      std::move(contributions), absl::MakeSpan(sum));
  return absl::MakeSpan(sum);
}

absl::Status OptimizerState::CheckFinite(size_t variable,
                                         absl::Span<const float> sum) const {
  const size_t place = FirstNonFinite(
      reinterpret_cast<const std::byte*>(sum.data()), sum.size());
  if (place == sum.size()) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat(
      "the gradient of ", variables_[variable]->spec().name, " has ",
      sum[place], " at element ", place, " in update ", iterations_,
      " of optimizer ", name_,
      ": nothing was updated; a lower learning rate or clipping may help"));
}

void OptimizerState::Clip(absl::Span<const absl::Span<float>> sums) const {
  if (spec_.has_clipvalue()) {
    for (const auto& sum : sums) ClipByValue(spec_.clipvalue(), sum);
  }
  if (spec_.has_clipnorm()) {
    for (const auto& sum : sums) ClipByNorm(spec_.clipnorm(), sum);
  }
  if (spec_.has_global_clipnorm()) {
    ClipByGlobalNorm(spec_.global_clipnorm(), sums);
  }
}

absl::Status OptimizerState::Update(size_t variable,
                                    absl::Span<const float> gradient) {
  VariableState& state = *variables_[variable];
  const Tensor& old = state.value(0);
  float* updated = nullptr;
  Tensor value = BlankTensor(state.shape(), &updated);
  RETURN_IF_ERROR(value.status()) << state.spec().name;
  std::vector<float*> slots;
  for (std::vector<float>& slot : slots_[variable]) {
    slots.push_back(slot.data());
  }
  rules_[variable]->Apply(
      iterations_,
      {.count = gradient.size(),
       .gradient = reinterpret_cast<const std::byte*>(gradient.data()),
       .value = old.values().data(),
       .new_value = updated,
       .slots = slots});
  state.SetAll(value);
  return absl::OkStatus();
}

}  // namespace parasol::loop
