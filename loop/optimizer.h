#ifndef PARASOL_LOOP_OPTIMIZER_H_
#define PARASOL_LOOP_OPTIMIZER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "loop/core/optimizer_state.h"
#include "loop/variable.h"
#include "ml/tape/tape.h"
#include "ml/tape/tensor.h"
#include "proto/job.pb.h"

namespace parasol::loop {

// An optimizer of some variables: the rules, schedules, clipping and averages
// of jobs. A program has as many as it likes. Cheap to copy: copies are the
// same optimizer.
class Optimizer {
 public:
  // Makes an optimizer from text as in a job file, such as
  // "adam { learning_rate: 2e-4 beta_1: 0.5 }". Its slots have its name in
  // errors and checkpoints.
  //   InvalidArgument      the text is no optimizer: says where; or a variable
  //                        is not trainable.
  //   AlreadyExists        an optimizer has this name.
  //   FailedPrecondition   the strategy has run a step.
  static absl::StatusOr<Optimizer> Create(absl::string_view name,
                                          absl::string_view text,
                                          std::vector<Variable> variables);
  static absl::StatusOr<Optimizer> Create(absl::string_view name,
                                          const job::Optimizer& spec,
                                          std::vector<Variable> variables);

  const std::vector<Variable>& variables() const { return variables_; }

  // In a step: adds the gradients of all replicas, one for each variable in
  // their order, and updates the variables by the sum. (So a loss that is to be
  // a mean is divided by the global batch: ComputeAverageLoss().) A variable
  // without a gradient stays as it is. All replicas call it alike.
  // Returns errors of OptimizerState::Apply().
  absl::Status ApplyGradients(absl::Span<const Tensor> gradients) const {
    return state_->Apply(gradients);
  }
  // Does so with the tape's gradients of `loss` by the variables. Each is added
  // as soon as the tape has it, while it computes the gradients of layers
  // before.
  absl::Status Minimize(const Tensor& loss, GradientTape& tape) const;

  // Number of updates.
  int64_t iterations() const { return state_->iterations(); }

 private:
  Optimizer(std::shared_ptr<OptimizerState> state,
            std::vector<Variable> variables)
      : state_(std::move(state)), variables_(std::move(variables)) {}

  std::shared_ptr<OptimizerState> state_;
  std::vector<Variable> variables_;
};

// Returns the tape's gradients of `target` by variables, in their order: for
// one that it does not reach, a tensor that is not connected().
absl::StatusOr<std::vector<Tensor>> GradientsBy(
    GradientTape& tape, const Tensor& target,
    const std::vector<Variable>& variables);

}  // namespace parasol::loop

#endif  // PARASOL_LOOP_OPTIMIZER_H_
