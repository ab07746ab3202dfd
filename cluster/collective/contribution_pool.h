#ifndef PARASOL_CLUSTER_COLLECTIVE_CONTRIBUTION_POOL_H_
#define PARASOL_CLUSTER_COLLECTIVE_CONTRIBUTION_POOL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "cluster/collective/shared_segment.h"
#include "cluster/rpc/shared_memory.h"

namespace parasol {

// Memory for contributions that the ranks of a machine read in place. An
// allocation is listed in the rank's segment, and offered as long as the pool
// exists. Thread-safe.
class ContributionPool {
 public:
  // The place of memory: bytes from `first` on of an allocation.
  struct Place {
    uint32_t allocation = 0;
    uint64_t first = 0;
  };

  // Lists what is allocated in `words`, which must outlive the pool.
  explicit ContributionPool(SharedWords& words) : words_(words) {}

  // Returns zeroed memory at a multiple of 64 bytes: ordinary memory, if the
  // system has none to share or the list is full.
  std::shared_ptr<float[]> Allocate(size_t count) ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the place of `bytes` bytes that lie in one allocation, or nullopt.
  std::optional<Place> Find(const void* memory, size_t bytes) const
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  SharedWords& words_;
  mutable absl::Mutex mu_;
  std::vector<std::shared_ptr<SharedMemory>> allocations_ ABSL_GUARDED_BY(mu_);
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_COLLECTIVE_CONTRIBUTION_POOL_H_
