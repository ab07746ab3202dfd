#include "loop/optimizer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "google/protobuf/text_format.h"
#include "loop/strategy.h"

namespace parasol::loop {

absl::StatusOr<Optimizer> Optimizer::Create(absl::string_view name,
                                            absl::string_view text,
                                            std::vector<Variable> variables) {
  job::Optimizer spec;
  if (!google::protobuf::TextFormat::ParseFromString(std::string(text),
                                                     &spec)) {
    return absl::InvalidArgumentError(
        absl::StrCat("optimizer ", name, ": `", text,
                     "` is none; write it as in a job file: "
                     "adam { learning_rate: 0.001 }"));
  }
  return Create(name, spec, std::move(variables));
}

absl::StatusOr<Optimizer> Optimizer::Create(absl::string_view name,
                                            const job::Optimizer& spec,
                                            std::vector<Variable> variables) {
  std::vector<std::shared_ptr<VariableState>> states;
  for (const Variable& variable : variables) {
    if (&variable.state()->world() != &GetStrategy().world()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "optimizer ", name, ": variable ", variable.name(),
          " was made under another strategy: make it while the scope of the "
          "optimizer's is open"));
    }
    states.push_back(variable.state());
  }
  ASSIGN_OR_RETURN(
      std::shared_ptr<OptimizerState> state,
      OptimizerState::Create(std::string(name), spec, std::move(states)));
  RETURN_IF_ERROR(GetStrategy().registry().Add(state));
  return Optimizer(std::move(state), std::move(variables));
}

absl::Status Optimizer::Minimize(const Tensor& loss, GradientTape& tape) const {
  const std::vector<Tensor> sources(variables_.begin(), variables_.end());
  RETURN_IF_ERROR(
      tape.Gradient(loss, sources,
                    {.ready =
                         [this](size_t variable, const Tensor& gradient) {
                           return state_->Bring(variable, gradient);
                         }})
          .status());
  return state_->Update();
}

absl::StatusOr<std::vector<Tensor>> GradientsBy(
    GradientTape& tape, const Tensor& target,
    const std::vector<Variable>& variables) {
  const std::vector<Tensor> sources(variables.begin(), variables.end());
  return tape.Gradient(target, sources);
}

}  // namespace parasol::loop
