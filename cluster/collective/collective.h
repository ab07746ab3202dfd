#ifndef PARASOL_CLUSTER_COLLECTIVE_COLLECTIVE_H_
#define PARASOL_CLUSTER_COLLECTIVE_COLLECTIVE_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cluster/collective/collective_group.h"

namespace parasol {

// A replica's addend to a pack.
struct Contribution {
  int replica = 0;
  absl::Span<const float> values;
};

// One rank's part in the operations of one group.
//
// All ranks begin the same operations, with the same sizes, in the same order;
// each may begin further ones before the earlier have completed, at most
// kMaxPending at once. An operation that differs between ranks ends the group.
//
// A sum adds the contributions of all replicas of the group in ascending order
// of the replicas, ((g0 + g1) + g2) + ..., to the last bit, whoever brings a
// replica and however the operation is carried out. The sum of no replicas is
// +0; one replica's sum is its contribution.
//
// An error ends the group on this rank and, as far as they can be reached, on
// all others: every pending and later operation completes with the same status.
//   Unavailable      a rank was lost, or has sent what is no message of the
//                    group; LostRank() says which, the message its name. Every
//                    rank that is left has this within 3 s.
//   InvalidArgument  ranks have begun different operations; the message names
//                    one.
//   Cancelled        this object was destroyed, or a newer group joined.
//   any              what a rank has given to Abort().
// Memory of an operation that has ended, well or not, is not touched any more.
// What it holds after an error is undefined. A group that has ended is of no
// use; the same endpoint joins one of a larger epoch.
//
// Thread-safe, but that operations must be begun in an order.
class Collective {
 public:
  static constexpr size_t kMaxPending = 1024;

  // Called once, when the operation has completed, from any thread and possibly
  // from within the call that begins it. May begin operations; must neither
  // Await() nor destroy the object.
  using Done = std::function<void(const absl::Status&)>;

  // Aborts what is pending, with Cancelled, and waits for its callbacks.
  virtual ~Collective() = default;

  virtual const CollectiveGroup& group() const = 0;

  // Sums. `contributions`: one of each of this rank's replicas, ascending, with
  // sum.size() elements. `sum` may be the memory of one of them, from its first
  // element on; it overlaps them in no other way.
  virtual void AllReduce(std::vector<Contribution> contributions,
                         absl::Span<float> sum, Done done) = 0;

  // Sums, of which this rank gets its slice alone: `slice` has as many elements
  // as SliceOf() gives it of the contributions' `count` elements. `slice`
  // overlaps no contribution.
  virtual void ReduceScatter(std::vector<Contribution> contributions,
                             size_t count, absl::Span<float> slice,
                             Done done) = 0;

  // Gives each rank the bytes of all ranks, which may be of different lengths:
  // (*gathered)[r] is what rank r brought.
  virtual void AllGather(absl::string_view own,
                         std::vector<std::string>* gathered, Done done) = 0;

  // Copies `bytes` of rank `source` to `bytes` of `receivers`, or of all ranks
  // if there are none. The sizes are the same there; other ranks give an empty
  // span.
  virtual void Broadcast(int source, const std::vector<int>& receivers,
                         absl::Span<std::byte> bytes, Done done) = 0;

  // Takes part in the work until all operations that were begun have completed.
  // Returns OK, or why the group has ended. The fastest way to wait: an
  // operation that is waited for so needs no other thread.
  virtual absl::Status Await() = 0;

  // Returns the ranks that a pending operation waits for, as far as this rank
  // knows: those that have not begun it, or are behind in it. A caller whose
  // patience ends names them to Abort().
  virtual std::vector<int> Awaited() const = 0;

  // Ends the group on all ranks with `why`, an error.
  virtual void Abort(const absl::Status& why) = 0;

  // Returns why the group has ended, or OK.
  virtual absl::Status status() const = 0;

  // Returns memory for `count` elements at a multiple of 64 bytes, zeroed.
  // Where ranks share a machine the others can read contributions in place that
  // lie in it; elsewhere it is ordinary memory. Valid as long as somebody holds
  // it, also after the group.
  virtual std::shared_ptr<float[]> AllocateContribution(size_t count) = 0;
};

// A process's place in groups, one after the other: an address that stays.
class CollectiveEndpoint {
 public:
  virtual ~CollectiveEndpoint() = default;

  // Takes this process's place in `group`. Blocks until all ranks have, `limit`
  // at most. An older group of this endpoint ends with Cancelled.
  //   InvalidArgument     CheckGroup().
  //   FailedPrecondition  the endpoint has joined a group of this or a larger
  //                       epoch; the message has it.
  //   DeadlineExceeded    ranks are missing; the message names all of them.
  //   any                 the group has ended already, as Collective says.
  //   Cancelled           CancelJoin().
  virtual absl::StatusOr<std::unique_ptr<Collective>> Join(
      const CollectiveGroup& group, absl::Duration limit) = 0;

  // Ends the Join() of a group of `epoch` or before, from another thread,
  // whether it is under way or has yet to begin. A caller that hears of a lost
  // rank need not wait for it.
  virtual void CancelJoin(int64_t epoch) = 0;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_COLLECTIVE_COLLECTIVE_H_
