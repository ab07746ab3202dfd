#ifndef PARASOL_LOOP_CORE_OPTIMIZER_STATE_H_
#define PARASOL_LOOP_CORE_OPTIMIZER_STATE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "loop/core/variable_state.h"
#include "ml/optimizer/optimizer.h"
#include "ml/tape/tensor.h"
#include "proto/job.pb.h"

namespace parasol::loop {

// An optimizer's rule, with the slots of the variables that it updates. The
// gradients of all replicas of all processes are added, in the order of the
// replicas, and the sum is applied once.
//
// Used as VariableState is.
class OptimizerState {
 public:
  // `spec`: a job's optimizer. All variables are trainable, and of one world.
  //   InvalidArgument  the optimizer can't be used, or there is no variable.
  static absl::StatusOr<std::shared_ptr<OptimizerState>> Create(
      std::string name, const job::Optimizer& spec,
      std::vector<std::shared_ptr<VariableState>> variables);

  const std::string& name() const { return name_; }
  const job::Optimizer& spec() const { return spec_; }
  absl::Span<const std::shared_ptr<VariableState>> variables() const {
    return variables_;
  }
  const parasol::Optimizer& rule(size_t variable) const {
    return *rules_[variable];
  }
  std::shared_ptr<const parasol::Optimizer> shared_rule(size_t variable) const {
    return rules_[variable];
  }

  // In a step: brings this replica's gradients, one for each variable; for one
  // that is not connected() the variable stays as it is, on all replicas alike.
  // Returns when the variables have been updated.
  //   InvalidArgument     a gradient's shape, or their number, does not fit.
  //   OutOfRange          the sum of a gradient is not finite: names it.
  //   FailedPrecondition  outside of a step.
  absl::Status Apply(absl::Span<const Tensor> gradients);

  // Number of updates that were made.
  int64_t iterations() const { return iterations_; }
  void SetIterations(int64_t iterations) { iterations_ = iterations; }
  // The elements of a variable's slot.
  absl::Span<float> slot(size_t variable, size_t slot) {
    return absl::MakeSpan(slots_[variable][slot]);
  }

 private:
  using Gradients = absl::Span<const Tensor>;

  OptimizerState(std::string name, job::Optimizer spec,
                 std::vector<std::shared_ptr<VariableState>> variables)
      : name_(std::move(name)),
        spec_(std::move(spec)),
        variables_(std::move(variables)) {}

  World& world() const { return variables_.front()->world(); }
  absl::Status CheckFits(Gradients gradients) const;
  // Adds what all replicas have brought, and updates the variables.
  absl::Status ApplyAll(absl::Span<const Gradients> brought);
  // Begins the sum of one variable's gradients, and returns where it will be.
  absl::Span<float> BeginSum(size_t variable,
                             absl::Span<const Gradients> brought);
  absl::Status CheckFinite(size_t variable, absl::Span<const float> sum) const;
  void Clip(absl::Span<const absl::Span<float>> sums) const;
  absl::Status Update(size_t variable, absl::Span<const float> gradient);

  const std::string name_;
  const job::Optimizer spec_;
  const std::vector<std::shared_ptr<VariableState>> variables_;
  std::vector<std::shared_ptr<const parasol::Optimizer>> rules_;
  std::vector<std::vector<std::vector<float>>> slots_;
  std::vector<std::vector<float>> sums_;  // memory that is used again
  int64_t iterations_ = 0;
};

}  // namespace parasol::loop

#endif  // PARASOL_LOOP_CORE_OPTIMIZER_STATE_H_
