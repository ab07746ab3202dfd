#ifndef PARASOL_WORKER_GROUP_PACKED_SUMS_H_
#define PARASOL_WORKER_GROUP_PACKED_SUMS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "ml/layer/variable_spec.h"
#include "worker/group/gradient_packs.h"
#include "worker/store/parameter_store.h"

namespace parasol {

// The sums of a step's gradients of variables over all replicas, in host
// memory, in packs. Not thread-safe.
class PackedSums {
 public:
  // Both references must outlive this object. `replicas`: all of the job.
  PackedSums(const GradientPacks& packs,
             const std::vector<VariableSpec>& variables, int replicas)
      : packs_(packs), variables_(variables), replicas_(replicas) {}

  const GradientPacks& packs() const { return packs_; }
  // Returns the memory of all packs, which is there from the first call on.
  std::vector<std::vector<float>>& values();

  // Refuses sums that are not finite.
  //   OutOfRange  names the variable and its element.
  absl::Status CheckFinite(int64_t step);
  // Updates all variables of `parameters` by the means, once.
  void Apply(ParameterStore& parameters);

 private:
  const GradientPacks& packs_;
  const std::vector<VariableSpec>& variables_;
  const int replicas_;
  std::vector<std::vector<float>> values_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_GROUP_PACKED_SUMS_H_
