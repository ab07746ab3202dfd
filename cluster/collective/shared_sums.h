#ifndef PARASOL_CLUSTER_COLLECTIVE_SHARED_SUMS_H_
#define PARASOL_CLUSTER_COLLECTIVE_SHARED_SUMS_H_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cluster/collective/collective.h"
#include "cluster/collective/collective_group.h"
#include "cluster/collective/contribution_pool.h"
#include "cluster/collective/plan/owner_plan.h"
#include "cluster/collective/shared_segment.h"

namespace parasol {

// A sum that is taken in shared memory.
struct SharedSum {
  enum class Kind : uint64_t { kAllReduce = 1, kReduceScatter = 2 };

  Kind kind = Kind::kAllReduce;
  std::vector<Contribution> contributions = {};
  size_t count = 0;
  absl::Span<float> sum = {};  // only the rank's slice, for kReduceScatter
};

// One rank's part in the sums of ranks that share a machine, one after the
// other, chunk by chunk. A rank brings its contributions to a chunk: it copies
// them to its segment, if others can't read them where they are. Then
//
// - each rank adds a small pack itself, from all segments: one wait;
// - of a large one each adds its slice of the chunk, in its segment, and copies
//   the others' slices: two waits.
//
// A rank brings the next chunk before it waits for the slices of this one. It
// writes its own segment alone. So one that stood still, was given up
// and goes on later changes nothing of what the others have. What was copied to
// a slot stays until all have arrived at the next chunk. Used by one thread at
// a time, but for Interrupt() and Ring().
class SharedSums {
 public:
  // Bytes of a contribution to a pack that all add themselves, at most.
  static constexpr size_t kSmallBytes = 32 << 10;
  // Bytes of a contribution to one chunk, at most.
  static constexpr size_t kChunkBytes = 1 << 20;

  // `segments`: all ranks', by rank; the own one was created, the others
  // opened.
  SharedSums(const CollectiveGroup& group,
             std::vector<std::unique_ptr<SharedSegment>> segments,
             ContributionPool& pool);

  // Returns true if sums of groups with so many replicas fit.
  static bool Suits(const CollectiveGroup& group);

  // Begins the rank's next sum. Requires that there is none.
  void Begin(SharedSum sum);
  bool is_busy() const { return is_busy_; }
  // Goes on with the sum until it is done, until `limit` has passed while
  // others were waited for, or until Interrupt(). Then is_busy() says whether
  // it is done.
  //   InvalidArgument  ranks take different sums; the message says which.
  //   Unavailable      another rank has left.
  absl::Status GoOn(absl::Duration limit);
  // Returns the ranks that have arrived at fewer chunks than this one. Any
  // thread may call it.
  std::vector<int> Behind() const;
  // Makes GoOn() return soon.
  void Interrupt();
  // Lets the others know that this rank goes on with nothing.
  void Leave();

 private:
  enum class Stage { kAwaitAll, kReduce, kAwaitSums, kCopy };
  // A count that the others are waited for.
  using Count = std::atomic<uint64_t> SharedWords::*;

  absl::Status Step();
  absl::Status AwaitArrived();
  absl::Status AwaitReduced();
  // Brings the contributions to the chunk that follows `ahead` others.
  void Bring(size_t ahead);
  void AddSmall();
  void AddSlice();
  void CopySums();
  void Announce(Count count, uint64_t tick);
  // Finishes the chunk.
  void Finish();

  // Returns true if all have counted the chunk; waits until then, or until it
  // is to return.
  absl::StatusOr<bool> Await(Count count);
  bool HaveAll(Count count) const;
  // Returns true if a rank that has not counted the chunk was last on the core
  // of this thread.
  bool IsAwaitedOnThisCore(Count count) const;
  absl::Status CheckLeft(Count count) const;

  void WritePost();
  // Reads what the others have posted, and finds their contributions.
  absl::Status ReadPosts();
  absl::StatusOr<const float*> PlaceOf(int rank, const SharedPost& post,
                                       size_t index);

  // Adds elements [first, first + count) of the chunk.
  void Add(size_t first, size_t count, float* sum);
  // Returns the elements of the chunk that follows `ahead` others.
  ElementRange Chunk(size_t ahead = 0) const {
    const size_t first = (chunk_ + ahead) * chunk_elements_;
    if (first >= sum_.count) return {};
    return {first, std::min(chunk_elements_, sum_.count - first)};
  }
  // Returns the slice of the chunk that a rank adds.
  ElementRange SliceOfChunk(int rank) const;
  bool IsSmall() const {
    return sum_.kind == SharedSum::Kind::kAllReduce &&
           sum_.count * sizeof(float) <= kSmallBytes;
  }

  const CollectiveGroup group_;
  const std::vector<std::unique_ptr<SharedSegment>> segments_;
  ContributionPool& pool_;
  const SharedSegment& own_;
  const std::vector<OrderedReplica> order_;
  const size_t chunk_elements_;

  SharedSum sum_;
  bool is_busy_ = false;
  uint64_t sequence_ = 0;  // the sum's
  uint64_t tick_ = 0;      // chunks of all sums before this one
  size_t chunk_ = 0;       // number in the sum
  Stage stage_ = Stage::kAwaitAll;
  // Places of contributions in the replicas' order; null if one is copied.
  std::vector<const float*> places_;
  std::vector<const float*> addends_;
  // Other ranks' allocations, opened.
  std::map<std::pair<int, uint32_t>, std::shared_ptr<SharedMemory>> opened_;
  std::chrono::steady_clock::time_point deadline_;
  std::atomic<bool> interrupted_ = false;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_COLLECTIVE_SHARED_SUMS_H_
