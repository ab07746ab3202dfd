#ifndef PARASOL_COORDINATOR_STEPS_WAITING_CLAIMS_H_
#define PARASOL_COORDINATOR_STEPS_WAITING_CLAIMS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/chief.pb.h"

namespace parasol {

// A worker's claim of steps, which is answered by a call of `done`: at once, or
// when there is news for it, or at its deadline.
struct StepClaim {
  using Done = std::function<void(absl::StatusOr<wire::ClaimStepsResponse>)>;

  wire::ClaimStepsRequest request;
  absl::Time came = absl::InfinitePast();
  absl::Time deadline;
  Done done;
};

// The claims that wait at the chief, at most one of each process: there are no
// more of them than members of the cluster, whoever calls. Pure.
class WaitingClaims {
 public:
  // Adds a claim. Returns the process's earlier claim, if there is one: a
  // process that claims again has given its earlier call up.
  std::optional<StepClaim> Add(StepClaim claim);

  // Take claims out, in the order of their deadlines: all, or the claims whose
  // deadline is not after `now`.
  std::vector<StepClaim> TakeAll();
  std::vector<StepClaim> TakeDue(absl::Time now);

  // Returns the earliest deadline; InfiniteFuture if no claim waits.
  absl::Time deadline() const;
  size_t size() const { return claims_.size(); }

 private:
  std::map<uint64_t, StepClaim> claims_;  // key: incarnation
  std::set<std::pair<absl::Time, uint64_t>> deadlines_;
};

}  // namespace parasol

#endif  // PARASOL_COORDINATOR_STEPS_WAITING_CLAIMS_H_
