#ifndef PARASOL_LOOP_CORE_OPTIMIZER_STATE_H_
#define PARASOL_LOOP_CORE_OPTIMIZER_STATE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "loop/core/shared_push.h"
#include "loop/core/variable_state.h"
#include "ml/optimizer/optimizer.h"
#include "ml/tape/tensor.h"
#include "proto/job.pb.h"
#include "worker/store/inner_rate.h"

namespace parasol::loop {

// An optimizer's rule, with the slots of the variables that it updates. The
// gradients of all replicas of all processes are added, in the order of the
// replicas, and the sum is applied once. Where ps hold the variables it is
// pushed to them, large gradients while others are still computed, and the
// slots here are not used, unless updates are local steps: then they are made
// here, as without ps.
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
  //   OutOfRange          the sum of a gradient is not finite: names it, and is
  //                       not applied.
  //   FailedPrecondition  outside of a step, or a local step outside of an
  //                       iteration.
  absl::Status Apply(absl::Span<const Tensor> gradients);

  // Do so in parts: bring one gradient after the other, each once, and then
  // update. The sum of a gradient begins as soon as all replicas of this
  // process have brought it and the gradients of all variables behind it: the
  // last variables' are best brought first.
  absl::Status Bring(size_t variable, const Tensor& gradient)
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Update() ABSL_LOCKS_EXCLUDED(mu_);

  // Says that updates are local steps, which are made while the variables are
  // held, and that the next ones are in this iteration: a schedule goes by the
  // iterations of all workers. Returns errors of InnerRate::Of().
  absl::Status StepLocally(int64_t iteration);

  // Number of updates that were made.
  int64_t iterations() const { return iterations_; }
  void SetIterations(int64_t iterations) { iterations_ = iterations; }
  // The elements of a variable's slot.
  absl::Span<float> slot(size_t variable, size_t slot) {
    return absl::MakeSpan(slots_[variable][slot]);
  }

 private:
  OptimizerState(std::string name, job::Optimizer spec,
                 std::vector<std::shared_ptr<VariableState>> variables)
      : name_(std::move(name)),
        spec_(std::move(spec)),
        variables_(std::move(variables)),
        update_name_("the sum of gradients of optimizer " + name_) {}

  World& world() const { return variables_.front()->world(); }
  absl::Status CheckFits(size_t variable, const Tensor& gradient) const;
  // Forgets what a step has left that has failed.
  absl::Status EnterStep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Begins the sums that are next, the last variable's first: the order is one
  // in all processes, whatever order they bring gradients in.
  absl::Status BeginSums() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void BeginSum(size_t variable) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Has ps make updates while others' gradients are computed, when they are
  // worth a push of their own. UpdateAll() returns its error.
  void PushIfWorthIt() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status PushEarly() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Clear() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Waits for what a step that has failed has pushed.
  void EndStep() ABSL_LOCKS_EXCLUDED(mu_);
  // Updates the variables by the sums, when all replicas have brought all.
  absl::Status UpdateAll() ABSL_LOCKS_EXCLUDED(mu_);
  bool is_clipped() const;
  void Clip() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Checks the sums that are not checked yet.
  absl::Status CheckFinite() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status CheckFinite(size_t variable, absl::Span<const float> sum) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status UpdateOne(size_t variable, absl::Span<const float> gradient);
  // Makes the rules that an optimizer has for the variables.
  absl::Status MakeRules(const job::Optimizer& spec);
  // Returns true if ps make the updates.
  bool is_with_ps() const {
    return variables_.front()->is_shared() && !local_.has_value();
  }
  absl::Status CheckMayStepLocally() const;
  // Has ps make the updates of sums that were not sent yet.
  absl::Status Push() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::string name_;
  const job::Optimizer spec_;
  const std::vector<std::shared_ptr<VariableState>> variables_;
  std::vector<std::shared_ptr<const parasol::Optimizer>> rules_;
  std::vector<std::vector<std::vector<float>>> slots_;
  int64_t iterations_ = 0;
  struct LocalSteps {
    std::optional<InnerRate> rate;
  };
  std::optional<LocalSteps> local_;  // nullopt: updates are no local steps
  const std::string update_name_;    // for errors
  std::vector<std::string> gradient_names_;  // index: variable

  // The update that is being prepared.
  absl::Mutex mu_;
  int64_t step_ ABSL_GUARDED_BY(mu_) = 0;  // number of the step that it is in
  // Gradients that replicas of this process brought; index: variable, replica.
  std::vector<std::vector<std::optional<Tensor>>> brought_ ABSL_GUARDED_BY(mu_);
  std::vector<int> arrived_ ABSL_GUARDED_BY(mu_);  // index: variable
  // Number of variables, from the last one on, whose sums are begun.
  size_t begun_ ABSL_GUARDED_BY(mu_) = 0;
  bool is_summing_ ABSL_GUARDED_BY(mu_) = false;
  // The variables that have gradients, with their sums.
  std::vector<size_t> updated_ ABSL_GUARDED_BY(mu_);
  std::vector<absl::Span<const float>> sums_ ABSL_GUARDED_BY(mu_);
  // How many of them, the first ones, are known to be finite, and how many were
  // pushed; the elements of the others.
  size_t checked_ ABSL_GUARDED_BY(mu_) = 0;
  size_t pushed_ ABSL_GUARDED_BY(mu_) = 0;
  size_t waiting_elements_ ABSL_GUARDED_BY(mu_) = 0;
  std::optional<SharedPush> push_ ABSL_GUARDED_BY(mu_);
  // Error of what was done before all was brought: all replicas'.
  absl::Status early_ ABSL_GUARDED_BY(mu_);
  // Memory that is used again; index: variable.
  std::vector<std::vector<float>> memory_ ABSL_GUARDED_BY(mu_);
  std::vector<absl::Span<float>> clipped_ ABSL_GUARDED_BY(mu_);
};

}  // namespace parasol::loop

#endif  // PARASOL_LOOP_CORE_OPTIMIZER_STATE_H_
