#ifndef PARASOL_CLUSTER_COLLECTIVE_PLAN_PLAN_H_
#define PARASOL_CLUSTER_COLLECTIVE_PLAN_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"

namespace parasol {

// Bytes [first, first + bytes) of one of an operation's buffers at a rank.
struct Region {
  int buffer = 0;
  size_t first = 0;
  size_t bytes = 0;
};

// One thing that a rank does in an operation.
struct CollectiveStep {
  enum class Kind { kReceive, kSend, kSum };

  Kind kind = Kind::kSum;
  // Received to, sent from, or the elements that become the sum.
  Region region;
  // kReceive, kSend: the other rank, and the message's number among those that
  // this operation sends from the one to the other.
  int peer = 0;
  uint64_t piece = 0;
  // kSum: elements of as many bytes, added in this order.
  std::vector<Region> addends = {};
  // Steps that begin after this one has completed.
  std::vector<int> next = {};
  // How many steps this one begins after.
  int waits_for = 0;
};

// The doings of one rank in one operation: steps, each after those that it
// waits for. Depends on the ranks' layout and the size alone. Messages from one
// rank to another arrive in the order in which they are sent.
class CollectivePlan {
 public:
  // Each returns the number of a new step, which begins after the steps
  // `after`. A step of no bytes does not exist: -1, which may be waited for.
  int Receive(int peer, uint64_t piece, const Region& region,
              absl::Span<const int> after = {});
  int Send(int peer, uint64_t piece, const Region& region,
           absl::Span<const int> after = {});
  int Sum(const Region& region, std::vector<Region> addends,
          absl::Span<const int> after = {});

  const std::vector<CollectiveStep>& steps() const { return steps_; }
  // Returns the step that receives that message, or nullopt.
  std::optional<int> FindReceive(int peer, uint64_t piece) const;

  // Bytes of the buffer in which the plan keeps what it receives to add it.
  size_t scratch_bytes = 0;

 private:
  int Add(CollectiveStep step, absl::Span<const int> after);

  std::vector<CollectiveStep> steps_;
  absl::flat_hash_map<std::pair<int, uint64_t>, int> receives_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_COLLECTIVE_PLAN_PLAN_H_
