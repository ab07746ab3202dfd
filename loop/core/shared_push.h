#ifndef PARASOL_LOOP_CORE_SHARED_PUSH_H_
#define PARASOL_LOOP_CORE_SHARED_PUSH_H_

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "loop/core/variable_state.h"
#include "ml/tape/tensor.h"
#include "parameters/training_parameters.h"

namespace parasol::loop {

// A gradient of a shared variable.
struct SharedGradient {
  VariableState* variable = nullptr;
  absl::Span<const float> values;
};

// Gradients of shared variables on their way to the ps, each of which applies
// its own exactly once, and the values behind these updates, and behind others'
// that came before, on their way back. Used by one thread at a time.
class SharedPush {
 public:
  // `parameters` must outlive this object.
  explicit SharedPush(TrainingParameters& parameters)
      : parameters_(parameters) {}
  SharedPush(const SharedPush&) = delete;
  SharedPush& operator=(const SharedPush&) = delete;
  // Waits for what was sent, which the variables don't learn of.
  ~SharedPush();

  // Starts to push gradients, each variable's once. Their memory must stay,
  // unchanged, until Finish() returns or this object ends.
  //   ResourceExhausted  there is no memory.
  absl::Status Send(absl::Span<const SharedGradient> gradients);
  // Waits until all are applied, and gives the variables their new values.
  // Returns errors of Pending::Wait().
  absl::Status Finish();

 private:
  absl::Status Wait();

  TrainingParameters& parameters_;
  std::vector<TrainingParameters::PushAndPull> sent_;
  // Values that pulls bring, until the variables have them.
  std::vector<std::pair<VariableState*, Tensor>> values_;
};

// Pushes gradients and waits. Fails as SharedPush does.
absl::Status PushShared(absl::Span<const SharedGradient> gradients,
                        TrainingParameters& parameters);

// Returns the error of a change when the job is complete and ps have left.
absl::Status JobIsComplete();

// Gives shared variables their newest values. Returns errors of
// Pending::Wait().
absl::Status PullShared(absl::Span<VariableState* const> variables,
                        TrainingParameters& parameters);

}  // namespace parasol::loop

#endif  // PARASOL_LOOP_CORE_SHARED_PUSH_H_
