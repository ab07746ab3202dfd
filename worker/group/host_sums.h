#ifndef PARASOL_WORKER_GROUP_HOST_SUMS_H_
#define PARASOL_WORKER_GROUP_HOST_SUMS_H_

#include <cstdint>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "worker/group/group_sums.h"
#include "worker/group/packed_sums.h"
#include "worker/group/step_gradients.h"

namespace parasol {

// Sums of gradients in host memory, by the group's collectives.
class HostSums : public GroupSums {
 public:
  // Borrows `gradients`, which this worker's replicas have pushed.
  HostSums(PackedSums sums, StepGradients& gradients)
      : sums_(std::move(sums)), gradients_(gradients) {}

  void BeginGroup(GroupRun& run) override;
  absl::Status Meet(GroupRun&) override { return absl::OkStatus(); }
  void EndGroup() override;
  absl::Status Add(GroupRun& run, int64_t step,
                   absl::FunctionRef<absl::Status()> let_rows_leave) override;
  absl::Status CheckFinite(int64_t step) override {
    return sums_.CheckFinite(step);
  }
  absl::Status Apply(ParameterStore& parameters) override {
    sums_.Apply(parameters);
    return absl::OkStatus();
  }

 private:
  PackedSums sums_;
  StepGradients& gradients_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_GROUP_HOST_SUMS_H_
