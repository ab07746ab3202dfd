#include "loop/core/shared_push.h"

#include "base/status_macros.h"
#include "loop/core/blank_tensor.h"

namespace parasol::loop {
namespace {

// The variables of a pull, with the memory that their values come to.
using PulledValues = std::vector<std::pair<VariableState*, Tensor>>;

// Adds a variable to a request.
absl::Status AddTo(TrainingParameters::PullRequest& request,
                   VariableState& variable, PulledValues& values) {
  float* elements = nullptr;
  Tensor value = BlankTensor(variable.shape(), &elements);
  RETURN_IF_ERROR(value.status()) << variable.spec().name;
  request.targets.push_back(
      {.variable = variable.number(),
       .values = absl::MakeSpan(elements, value.values().size())});
  values.emplace_back(&variable, std::move(value));
  return absl::OkStatus();
}

// Gives the variables what has come.
void Take(PulledValues& values) {
  for (const auto& [variable, value] : values) variable->SetAll(value);
  values.clear();
}

}  // namespace

SharedPush::~SharedPush() { Wait().IgnoreError(); }

absl::Status SharedPush::Send(absl::Span<const SharedGradient> gradients) {
  TrainingParameters::PushRequest push;
  TrainingParameters::PullRequest pull;
  for (const SharedGradient& gradient : gradients) {
    push.gradients.push_back(
        {.variable = gradient.variable->number(), .values = gradient.values});
    RETURN_IF_ERROR(AddTo(pull, *gradient.variable, values_));
  }
  sent_.push_back(parameters_.PushPull(std::move(push), std::move(pull)));
  return absl::OkStatus();
}

absl::Status SharedPush::Finish() {
  RETURN_IF_ERROR(Wait());
  Take(values_);
  return absl::OkStatus();
}

// For all, whatever becomes of one: they use memory of this object.
absl::Status SharedPush::Wait() {
  absl::Status result;
  for (const TrainingParameters::PushAndPull& both : sent_) {
    result.Update(both.push->Wait());
    result.Update(both.pull->Wait());
  }
  sent_.clear();
  return result;
}

absl::Status PushShared(absl::Span<const SharedGradient> gradients,
                        TrainingParameters& parameters) {
  SharedPush push(parameters);
  RETURN_IF_ERROR(push.Send(gradients));
  return push.Finish();
}

absl::Status JobIsComplete() {
  return absl::FailedPreconditionError(
      "a variable that ps held is changed, but the cluster's job is complete: "
      "change nothing after the last iteration");
}

absl::Status PullShared(absl::Span<VariableState* const> variables,
                        TrainingParameters& parameters) {
  if (variables.empty()) return absl::OkStatus();
  TrainingParameters::PullRequest request;
  PulledValues values;
  for (VariableState* variable : variables) {
    RETURN_IF_ERROR(AddTo(request, *variable, values));
  }
  RETURN_IF_ERROR(parameters.Pull(std::move(request))->Wait());
  Take(values);
  return absl::OkStatus();
}

}  // namespace parasol::loop
