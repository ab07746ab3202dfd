#ifndef PARASOL_TESTS_SIMULATION_GROUP_GROUP_MODEL_H_
#define PARASOL_TESTS_SIMULATION_GROUP_GROUP_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "ml/layer/variable_spec.h"
#include "proto/job.pb.h"
#include "tests/simulation/schedule.h"
#include "worker/store/parameter_store.h"

namespace parasol::simulation {

// Bytes after which a pack of gradients is closed: each variable is one.
inline constexpr int64_t kBytesPerPack = 1;

// The variables that the workers of a group train.
std::vector<VariableSpec> GroupVariables();

// Returns the gradient of a variable by a replica in a step, given the
// variable's values: another one for each of these. Under a planner that adds
// in another order than the replicas', sums are exact, and so the same.
std::vector<float> GroupGradient(const Shape& shape, int64_t step, int replica,
                                 size_t variable,
                                 absl::Span<const float> values);

// All values, slots and numbers of updates of a state.
struct GroupContents {
  std::vector<float> elements;
  std::vector<int64_t> updates;

  friend bool operator==(const GroupContents&, const GroupContents&) = default;
};

GroupContents ContentsOf(ParameterStore& parameters);
// Writes `contents` to the parameters.
void SetContents(const GroupContents& contents, ParameterStore& parameters);

// The contents of a state after each step from some step on, as one process has
// them that computes all replicas, one after the other.
class GroupReference {
 public:
  // Begins with the initial values.
  GroupReference(job::Job job, const Shape& shape);
  // Begins with `contents` after `step`.
  GroupReference(job::Job job, const Shape& shape, int64_t step,
                 const GroupContents& contents);

  int64_t first_step() const { return first_step_; }

  // `step` is first_step() or a later one.
  const GroupContents& After(int64_t step);

 private:
  void MakeStep();

  const job::Job job_;
  const Shape shape_;
  const int64_t first_step_;
  std::unique_ptr<ParameterStore> parameters_;
  std::vector<GroupContents> after_;
};

}  // namespace parasol::simulation

#endif  // PARASOL_TESTS_SIMULATION_GROUP_GROUP_MODEL_H_
