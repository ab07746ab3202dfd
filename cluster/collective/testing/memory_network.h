#ifndef PARASOL_CLUSTER_COLLECTIVE_TESTING_MEMORY_NETWORK_H_
#define PARASOL_CLUSTER_COLLECTIVE_TESTING_MEMORY_NETWORK_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "cluster/collective/collective.h"

namespace parasol {

class MemoryGroup;

// Endpoints whose ranks are threads of one process. The rank that is the last
// to begin an operation carries it out for all. The plainest implementation:
// what the others are compared with.
//
// Thread-safe. Must outlive its endpoints and their groups.
class MemoryNetwork {
 public:
  explicit MemoryNetwork(Clock& clock = Clock::Real()) : clock_(clock) {}
  MemoryNetwork(const MemoryNetwork&) = delete;
  MemoryNetwork& operator=(const MemoryNetwork&) = delete;

  // Returns the endpoint of the ranks with this address.
  std::unique_ptr<CollectiveEndpoint> MakeEndpoint(const std::string& address);

 private:
  friend class MemoryEndpoint;

  // Returns the group of that epoch, made by the first who asks.
  //   InvalidArgument  it has other ranks.
  absl::StatusOr<std::shared_ptr<MemoryGroup>> GroupOf(
      const CollectiveGroup& group) ABSL_LOCKS_EXCLUDED(mu_);

  Clock& clock_;
  absl::Mutex mu_;
  std::map<int64_t, std::weak_ptr<MemoryGroup>> groups_ ABSL_GUARDED_BY(mu_);
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_COLLECTIVE_TESTING_MEMORY_NETWORK_H_
