#ifndef PARASOL_CLUSTER_COLLECTIVE_PLAN_PLAN_RUN_H_
#define PARASOL_CLUSTER_COLLECTIVE_PLAN_PLAN_RUN_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cluster/collective/plan/plan.h"

namespace parasol {

// A plan that is being carried out on given memory: the caller sends and
// receives, this object adds and says what comes next. Pure. Not thread-safe.
class PlanRun {
 public:
  // A message that can leave now.
  struct Send {
    int step = 0;
    int peer = 0;
    uint64_t piece = 0;
    absl::Span<const std::byte> bytes;
  };

  // `buffers`: the memory of the plan's buffers.
  PlanRun(std::shared_ptr<const CollectivePlan> plan,
          std::vector<std::byte*> buffers);

  // Begins all that waits for nothing. Appends to `sends`.
  void Begin(std::vector<Send>& sends);
  // Returns the memory for a message that begins to arrive.
  //   InvalidArgument  no such message is due, or it has another size.
  absl::StatusOr<std::byte*> Target(int peer, uint64_t piece,
                                    size_t bytes) const;
  // Notes that all of a message has arrived for which Target() gave memory.
  void Received(int peer, uint64_t piece, std::vector<Send>& sends);
  // Notes that the bytes of a send are not needed any more.
  void Sent(int step, std::vector<Send>& sends) { Complete(step, sends); }

  bool is_complete() const { return open_ == 0; }

 private:
  // Notes that a step is done, and begins those that waited for it alone.
  void Complete(int step, std::vector<Send>& sends);
  // Begins a step whose predecessors are done. Returns true if it is done.
  bool BeginStep(int step, std::vector<Send>& sends);
  std::byte* At(const Region& region) const {
    return buffers_[region.buffer] + region.first;
  }

  const std::shared_ptr<const CollectivePlan> plan_;
  const std::vector<std::byte*> buffers_;
  std::vector<int> waits_for_;
  std::vector<bool> is_done_;
  size_t open_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_COLLECTIVE_PLAN_PLAN_RUN_H_
