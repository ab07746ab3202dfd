#ifndef PARASOL_LOOP_CORE_SHARED_VARIABLES_H_
#define PARASOL_LOOP_CORE_SHARED_VARIABLES_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "loop/core/registry.h"
#include "loop/core/variable_state.h"
#include "ml/tape/tensor.h"
#include "parameters/training_parameters.h"

namespace parasol::loop {

// The variables of a program that ps hold, which all workers read and change:
// what optimizers train, and what all replicas change together. The others
// are each worker's own: each replica has a value for itself.
//
// Workers that make local steps change values of their own for several
// iterations, by their optimizers. Then each pushes the difference of each
// variable as its outer gradient, which the ps apply by the job's optimizer.
//
// Used by the program's thread, while no step is under way.
class SharedVariables {
 public:
  // `registry` must be closed. Makes its variables shared. All must outlive
  // this object.
  SharedVariables(const Registry& registry, TrainingParameters& parameters);

  // Says that optimizers make local steps. `statistics_share`: the factor of a
  // statistic's difference, 1 / workers. Returns errors of InnerRate::Of().
  absl::Status StepLocally(float statistics_share);

  // Gives all shared variables their newest values. Returns errors of
  // Pending::Wait().
  absl::Status Pull();
  // Pulls the values that local steps begin with, and holds the variables until
  // Commit(). Returns errors of Pending::Wait().
  absl::Status BeginExchange();
  // Gives the optimizers the learning rates of an iteration of local steps.
  absl::Status BeginIteration(int64_t iteration);
  // Ends an iteration, or all of an exchange: gives it an update. With `keeps`
  // what the program keeps of its own goes to the ps, from where it gets into
  // checkpoints: one worker does so.
  //   OutOfRange  a variable's value is not finite after local steps: names
  //               it, and nothing is pushed.
  //   any other   errors of Pending::Wait().
  absl::Status Commit(bool keeps);

 private:
  // Adds the differences of the variables that were changed since
  // BeginExchange(), and ends what that has begun.
  absl::Status AddDifferences(TrainingParameters::PushRequest& push);
  // Adds the differences of what the program keeps, in `differences`.
  absl::Status AddKept(TrainingParameters::PushRequest& push,
                       std::vector<std::vector<float>>& differences);

  const Registry& registry_;
  TrainingParameters& parameters_;
  std::vector<VariableState*> shared_;
  float statistics_share_ = 1;
  // The values at the begin of an exchange, as `shared_`; empty: none is under
  // way.
  std::vector<Tensor> begin_;
  // Memory of differences that is used again, as `shared_`.
  std::vector<std::vector<float>> differences_;
};

}  // namespace parasol::loop

#endif  // PARASOL_LOOP_CORE_SHARED_VARIABLES_H_
