#ifndef PARASOL_CLUSTER_CLIENT_EXCHANGE_OUTCOME_H_
#define PARASOL_CLUSTER_CLIENT_EXCHANGE_OUTCOME_H_

#include <algorithm>
#include <cstdint>

namespace parasol {

// What the shards say about a push or a pull that they have carried out.
struct ExchangeOutcome {
  // Updates that what was pulled, or pushed to, has had: the smallest and the
  // largest number over its chunks and tables.
  int64_t min_updates = 0;
  int64_t max_updates = 0;
  // A synchronous push came after its step was complete, somewhere.
  bool stale = false;

  // That of both together.
  void Join(const ExchangeOutcome& other) {
    min_updates = std::min(min_updates, other.min_updates);
    max_updates = std::max(max_updates, other.max_updates);
    stale |= other.stale;
  }
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CLIENT_EXCHANGE_OUTCOME_H_
