#ifndef PARASOL_LOOP_CORE_STEP_CHANGES_H_
#define PARASOL_LOOP_CORE_STEP_CHANGES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "loop/core/variable_state.h"
#include "ml/tape/tensor.h"

namespace parasol::loop {

// Changes of variables that no gradient makes, such as moving moments. Each
// replica sees its own in its step. When the step has ended, all replicas have
// the value less the mean of their changes, each weighted by its number of
// examples, as jobs with several replicas do. A step that fails changes
// nothing.
//
// Used in a step by each replica's thread, for that replica.
class StepChanges {
 public:
  // `name`: for errors, "model generator". The variables have one value on all
  // replicas, and are of one world.
  StepChanges(std::string name,
              std::vector<std::shared_ptr<VariableState>> variables);

  size_t size() const { return variables_.size(); }

  // Returns the value of variable number `variable` as replica `local` sees it.
  Tensor Value(int local, size_t variable) const;
  // Counts a call over `examples` examples, which changes each variable by what
  // is to be subtracted of it; no changes at all if there are no examples.
  absl::Status Add(int local, int64_t examples,
                   absl::Span<const Tensor> changes);

  // Ends a step, whose result is `result`. All processes have calls in the same
  // steps.
  // Returns errors of Peers::Await().
  absl::Status EndStep(const absl::Status& result);

 private:
  // A replica's part of a step.
  struct Part {
    bool has_calls = false;
    int64_t examples = 0;
    std::vector<Tensor> changes;  // sums over its calls; none: no example
  };

  absl::Status Apply();
  // Writes the sums over all replicas: of their examples first, then of each
  // change times its replica's examples.
  absl::Status AddReplicas();
  absl::Status Subtract(size_t variable, const float* sum, float examples);

  const std::string name_;
  const std::vector<std::shared_ptr<VariableState>> variables_;
  std::vector<Part> parts_;  // index: replica of this process
  // Memory that is used again.
  std::vector<std::vector<float>> weighted_;  // index: replica of this process
  std::vector<float> sum_;
};

}  // namespace parasol::loop

#endif  // PARASOL_LOOP_CORE_STEP_CHANGES_H_
