#ifndef PARASOL_CLUSTER_CLIENT_EXCHANGE_OUTCOME_H_
#define PARASOL_CLUSTER_CLIENT_EXCHANGE_OUTCOME_H_

#include <algorithm>
#include <cstdint>

namespace parasol {

// The shards' report on a push or a pull that they have carried out.
struct ExchangeOutcome {
  // Number of updates that the pulled or pushed chunks and tables have had: the
  // smallest and the largest over them.
  int64_t min_updates = 0;
  int64_t max_updates = 0;
  // True if a synchronous push came to some shard after its step was complete.
  bool stale = false;

  // Makes this the outcome of both together.
  void Join(const ExchangeOutcome& other) {
    min_updates = std::min(min_updates, other.min_updates);
    max_updates = std::max(max_updates, other.max_updates);
    stale |= other.stale;
  }
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CLIENT_EXCHANGE_OUTCOME_H_
