#include "loop/core/optimizer_state.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cluster/replica_sum/first_non_finite.h"
#include "loop/core/blank_tensor.h"
#include "loop/core/shared_push.h"
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
  for (const auto& variable : state->variables_) {
    const VariableSpec& of = variable->spec();
    if (!of.trained) {
      return absl::InvalidArgumentError(absl::StrCat("optimizer ", state->name_,
                                                     ": variable ", of.name,
                                                     " is not trainable"));
    }
    state->gradient_names_.push_back(absl::StrCat("gradient of ", of.name));
  }
  RETURN_IF_ERROR(state->MakeRules(spec)) << "optimizer " << state->name_;
  const size_t count = state->variables_.size();
  for (size_t i = 0; i < count; ++i) {
    const parasol::Optimizer& rule = *state->rules_[i];
    auto& slots = state->slots_.emplace_back();
    for (size_t slot = 0; slot < rule.slot_names().size(); ++slot) {
      slots.emplace_back(state->variables_[i]->spec().elements(),
                         rule.InitialSlotValue(slot));
    }
  }
  absl::MutexLock lock(&state->mu_);
  state->brought_.resize(count);
  for (auto& of_variable : state->brought_) {
    of_variable.resize(state->world().num_local());
  }
  state->arrived_.resize(count);
  state->memory_.resize(count);
  state->world().AtStepEnd(
      [weak = std::weak_ptr<OptimizerState>(state)](const absl::Status&) {
        const std::shared_ptr<OptimizerState> ended = weak.lock();
        if (ended != nullptr) ended->EndStep();
        return absl::OkStatus();
      });
  return state;
}

absl::Status OptimizerState::MakeRules(const job::Optimizer& spec) {
  std::map<std::string, std::shared_ptr<const parasol::Optimizer>> distinct;
  rules_.clear();
  for (const auto& variable : variables_) {
    const job::Optimizer own = VariableOptimizerOf(
        spec, variable->spec().name, variable->spec().learning_rate_multiplier);
    auto& rule = distinct[own.SerializeAsString()];
    if (rule == nullptr) {
      ASSIGN_OR_RETURN(rule, MakeVariableOptimizer(own));
      RETURN_IF_ERROR(rule->CheckCode());
    }
    rules_.push_back(rule);
  }
  return absl::OkStatus();
}

absl::Status OptimizerState::StepLocally(int64_t iteration) {
  if (!local_.has_value()) {
    ASSIGN_OR_RETURN(std::optional<InnerRate> rate, InnerRate::Of(spec_),
                     _ << "optimizer " << name_);
    local_ = {.rate = std::move(rate)};
  }
  if (!local_->rate.has_value()) return absl::OkStatus();
  job::Optimizer spec = spec_;
  local_->rate->Set(iteration, spec);
  RETURN_IF_ERROR(MakeRules(spec)) << "optimizer " << name_;
  return absl::OkStatus();
}

absl::Status OptimizerState::CheckMayStepLocally() const {
  if (variables_.front()->is_held()) return absl::OkStatus();
  if (world().peers().shared() == nullptr) return JobIsComplete();
  return absl::FailedPreconditionError(absl::StrCat(
      "optimizer ", name_,
      " makes local steps, and updates outside of an iteration: call it behind "
      "the Next() of a Training, which begins one"));
}

absl::Status OptimizerState::Apply(absl::Span<const Tensor> gradients) {
  if (gradients.size() != variables_.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "optimizer ", name_, " has ", variables_.size(),
        " variables, and is given ", gradients.size(), " gradients"));
  }
  for (size_t i = gradients.size(); i-- > 0;) {
    RETURN_IF_ERROR(Bring(i, gradients[i]));
  }
  return Update();
}

absl::Status OptimizerState::Bring(size_t variable, const Tensor& gradient) {
  const int local = world().current_local();
  if (local < 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "optimizer ", name_,
        " is given gradients outside of a step: call it in what Run() runs"));
  }
  RETURN_IF_ERROR(CheckFits(variable, gradient));
  absl::MutexLock lock(&mu_);
  RETURN_IF_ERROR(EnterStep());
  std::optional<Tensor>& place = brought_[variable][local];
  if (!place.has_value()) ++arrived_[variable];
  place = gradient;
  return BeginSums();
}

absl::Status OptimizerState::CheckFits(size_t variable,
                                       const Tensor& gradient) const {
  if (!gradient.connected()) return absl::OkStatus();
  const VariableState& of = *variables_[variable];
  RETURN_IF_ERROR(gradient.status()) << gradient_names_[variable];
  if (gradient.dtype() == DType::kFloat32 && gradient.shape() == of.shape()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      gradient_names_[variable], " has the shape ", gradient.shape().ToString(),
      ", and the variable ", of.shape().ToString()));
}

absl::Status OptimizerState::EnterStep() {
  if (step_ == world().steps()) return absl::OkStatus();
  step_ = world().steps();
  // Sums read what was brought until they end.
  const absl::Status ended =
      is_summing_ ? world().peers().Await() : absl::OkStatus();
  Clear();
  RETURN_IF_ERROR(ended) << "optimizer " << name_;
  return absl::OkStatus();
}

void OptimizerState::Clear() {
  // Waits for pushes, which read what is cleared.
  push_.reset();
  for (auto& of_variable : brought_) {
    std::fill(of_variable.begin(), of_variable.end(), std::nullopt);
  }
  std::fill(arrived_.begin(), arrived_.end(), 0);
  begun_ = 0;
  is_summing_ = false;
  updated_.clear();
  sums_.clear();
  checked_ = 0;
  pushed_ = 0;
  waiting_elements_ = 0;
  early_ = absl::OkStatus();
}

void OptimizerState::EndStep() {
  absl::MutexLock lock(&mu_);
  push_.reset();
}

absl::Status OptimizerState::BeginSums() {
  for (; early_.ok() && begun_ < variables_.size(); ++begun_) {
    const size_t variable = variables_.size() - 1 - begun_;
    if (arrived_[variable] < world().num_local()) return absl::OkStatus();
    const auto& brought = brought_[variable];
    for (const std::optional<Tensor>& one : brought) {
      if (one->connected() == brought.front()->connected()) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("variable ", variables_[variable]->spec().name,
                       " has a gradient on some replicas and none on others"));
    }
    if (!brought.front()->connected()) continue;
    BeginSum(variable);
  }
  return absl::OkStatus();
}

// A single replica's gradient is the sum, and where it is, unless it is to be
// clipped.
void OptimizerState::BeginSum(size_t variable) {
  const auto& brought = brought_[variable];
  updated_.push_back(variable);
  waiting_elements_ += brought.front()->size();
  if (world().num_replicas() == 1 && !is_clipped()) {
    sums_.push_back(brought.front()->values());
    PushIfWorthIt();
    return;
  }
  std::vector<Contribution> contributions;
  contributions.reserve(brought.size());
  for (size_t local = 0; local < brought.size(); ++local) {
    contributions.push_back(
        {.replica = world().first_replica() + static_cast<int>(local),
         .values = brought[local]->values()});
  }
  std::vector<float>& sum = memory_[variable];
  sum.resize(brought.front()->size());
  is_summing_ = true;
  world().peers().BeginAllReduce(gradient_names_[variable],
                                 std::move(contributions), absl::MakeSpan(sum));
  sums_.push_back(sum);
  PushIfWorthIt();
}

// Sums with ps are a process's own, and there at once. What is clipped has to
// wait for all.
void OptimizerState::PushIfWorthIt() {
  if (!is_with_ps() || is_clipped() ||
      waiting_elements_ < TrainingParameters::kPackElements) {
    return;
  }
  early_ = PushEarly();
}

absl::Status OptimizerState::PushEarly() {
  if (is_summing_) {
    RETURN_IF_ERROR(world().peers().Await()) << "optimizer " << name_;
  }
  RETURN_IF_ERROR(CheckFinite());
  RETURN_IF_ERROR(Push()) << "optimizer " << name_;
  return absl::OkStatus();
}

absl::Status OptimizerState::Update() {
  const int local = world().current_local();
  if (local < 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "optimizer ", name_,
        " is to update outside of a step: call it in what Run() runs"));
  }
  return world().Meet(
      local, update_name_, nullptr,
      [this](absl::Span<const void* const>) { return UpdateAll(); });
}

absl::Status OptimizerState::UpdateAll() {
  absl::MutexLock lock(&mu_);
  RETURN_IF_ERROR(early_);
  if (local_.has_value()) {
    RETURN_IF_ERROR(CheckMayStepLocally());
  }
  if (updated_.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "optimizer ", name_,
        " is given no gradient: none of its variables, of "
        "which the first is ",
        variables_[0]->spec().name, ", was reached from the target"));
  }
  if (is_summing_) {
    RETURN_IF_ERROR(world().peers().Await()) << "optimizer " << name_;
  }
  RETURN_IF_ERROR(CheckFinite());
  if (is_clipped()) Clip();
  if (is_with_ps()) {
    RETURN_IF_ERROR(Push()) << "optimizer " << name_;
    RETURN_IF_ERROR(push_->Finish()) << "optimizer " << name_;
  } else {
    for (size_t i = 0; i < updated_.size(); ++i) {
      RETURN_IF_ERROR(UpdateOne(updated_[i], sums_[i]));
    }
  }
  ++iterations_;
  Clear();
  return absl::OkStatus();
}

// The first variable's first.
absl::Status OptimizerState::CheckFinite() {
  for (size_t i = updated_.size(); i-- > checked_;) {
    RETURN_IF_ERROR(CheckFinite(updated_[i], sums_[i]));
  }
  checked_ = updated_.size();
  return absl::OkStatus();
}

absl::Status OptimizerState::CheckFinite(size_t variable,
                                         absl::Span<const float> sum) const {
  const size_t place = FirstNonFinite(
      reinterpret_cast<const std::byte*>(sum.data()), sum.size());
  if (place == sum.size()) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat(
      "the ", gradient_names_[variable], " has ", sum[place], " at element ",
      place, " in update ", iterations_, " of optimizer ", name_, ": ",
      pushed_ == 0 ? "nothing was updated" : "its variable was not updated",
      "; a lower learning rate or clipping may help"));
}

bool OptimizerState::is_clipped() const {
  return spec_.has_clipvalue() || spec_.has_clipnorm() ||
         spec_.has_global_clipnorm();
}

void OptimizerState::Clip() {
  // In the order of the variables, as norms are added.
  clipped_.clear();
  for (size_t i = updated_.size(); i-- > 0;) {
    clipped_.push_back(absl::MakeSpan(memory_[updated_[i]]));
  }
  if (spec_.has_clipvalue()) {
    for (const auto& sum : clipped_) ClipByValue(spec_.clipvalue(), sum);
  }
  if (spec_.has_clipnorm()) {
    for (const auto& sum : clipped_) ClipByNorm(spec_.clipnorm(), sum);
  }
  if (spec_.has_global_clipnorm()) {
    ClipByGlobalNorm(spec_.global_clipnorm(), clipped_);
  }
}

absl::Status OptimizerState::Push() {
  if (world().peers().shared() == nullptr) return JobIsComplete();
  if (!push_) push_.emplace(*world().peers().shared());
  std::vector<SharedGradient> gradients;
  for (size_t i = updated_.size(); i-- > pushed_;) {
    VariableState& variable = *variables_[updated_[i]];
    if (variable.trainer() != this) {
      return absl::InvalidArgumentError(absl::StrCat(
          "variable ", variable.spec().name,
          " has another optimizer, too: under parameter_server each variable "
          "has one"));
    }
    gradients.push_back({.variable = &variable, .values = sums_[i]});
  }
  pushed_ = updated_.size();
  waiting_elements_ = 0;
  return gradients.empty() ? absl::OkStatus() : push_->Send(gradients);
}

absl::Status OptimizerState::UpdateOne(size_t variable,
                                       absl::Span<const float> gradient) {
  VariableState& state = *variables_[variable];
  const Tensor& old = state.value(0);
  float* updated = nullptr;
  Tensor value = BlankTensor(state.shape(), &updated);
  RETURN_IF_ERROR(value.status()) << state.spec().name;
  absl::InlinedVector<float*, 4> slots;
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
