#ifndef PARASOL_CLUSTER_COLLECTIVE_COLLECTIVE_GROUP_H_
#define PARASOL_CLUSTER_COLLECTIVE_COLLECTIVE_GROUP_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cluster/collective/plan/all_reduce_planner.h"
#include "cluster/collective/plan/reduction_plans.h"
#include "cluster/collective/plan/slice.h"

namespace parasol {

// One process of a group.
struct CollectiveRank {
  // The "host:port" at which the others reach its endpoint; its name in errors.
  std::string address;
  // The replicas whose contributions it brings, ascending. Any numbers, not
  // only neighbouring ones; none for a rank that only receives.
  std::vector<int> replicas;
};

// The processes that take part in collective operations, the same for all of
// them but for `own_rank`. A rank is an index in `ranks`.
struct CollectiveGroup {
  // The number of this group. A rank that has joined a group joins only groups
  // of larger epochs; what belongs to another epoch is refused, never summed.
  int64_t epoch = 0;
  // Up to kMaxSecretBytes that only the members know; may be empty. Both ends
  // of a connection prove that they have them.
  std::string secret;
  std::vector<CollectiveRank> ranks;
  int own_rank = 0;
  // The plans of all-reduces, which then travel on connections; null: each size
  // has the algorithm that suits it, and shared memory where all ranks have
  // some. All ranks have a planner of one name, or none; a rank that differs is
  // refused.
  std::shared_ptr<const AllReducePlanner> planner;

  static constexpr size_t kMaxSecretBytes = 64;
  static constexpr size_t kMaxRanks = 1024;

  const CollectiveRank& own() const { return ranks[own_rank]; }
  // Returns "rank 2 (10.0.0.7:2222)".
  std::string NameOf(int rank) const;
  // Returns the number of replicas of all ranks.
  int replica_count() const;
  // Returns the replicas of each rank.
  ReplicaLayout layout() const;
  // Returns a number of each rank's machine: ranks whose addresses have the
  // same host share one.
  std::vector<int> machines() const;
};

// Returns InvalidArgument, and says why, unless `group` has ranks with
// different addresses, each replica once and in ascending order in each rank,
// an own rank and a secret that is not too long.
absl::Status CheckGroup(const CollectiveGroup& group);

// Returns the error of operations that a lost rank has ended:
// Unavailable, "rank 2 (10.0.0.7:2222) was lost: <why>".
absl::Status RankLostError(const CollectiveGroup& group, int rank,
                           const std::string& why);

// Returns `status` with the number of a rank that was lost.
absl::Status WithLostRank(absl::Status status, int rank);

// Returns the rank that RankLostError() names, or nullopt for another status.
std::optional<int> LostRank(const absl::Status& status);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_COLLECTIVE_COLLECTIVE_GROUP_H_
