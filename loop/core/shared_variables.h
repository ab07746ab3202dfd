#ifndef PARASOL_LOOP_CORE_SHARED_VARIABLES_H_
#define PARASOL_LOOP_CORE_SHARED_VARIABLES_H_

#include <vector>

#include "absl/status/status.h"
#include "loop/core/registry.h"
#include "loop/core/variable_state.h"
#include "parameters/training_parameters.h"

namespace parasol::loop {

// The variables of a program that ps hold, which all workers read and change:
// what optimizers train, and what all replicas change together. The others
// are each worker's own: each replica has a value for itself.
//
// Used by the program's thread, while no step is under way.
class SharedVariables {
 public:
  // `registry` must be closed. Makes its variables shared. All must outlive
  // this object.
  SharedVariables(const Registry& registry, TrainingParameters& parameters);

  // Gives all shared variables their newest values. Returns errors of
  // Pending::Wait().
  absl::Status Pull();
  // Ends an iteration: gives it an update. With `keeps` what the program keeps
  // of its own goes to the ps, from where it gets into checkpoints: one worker
  // does so. Returns errors of Pending::Wait().
  absl::Status Commit(bool keeps);

 private:
  const Registry& registry_;
  TrainingParameters& parameters_;
  std::vector<VariableState*> shared_;
};

}  // namespace parasol::loop

#endif  // PARASOL_LOOP_CORE_SHARED_VARIABLES_H_
