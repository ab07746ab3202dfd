#ifndef PARASOL_CLUSTER_COLLECTIVE_SHARED_SEGMENT_H_
#define PARASOL_CLUSTER_COLLECTIVE_SHARED_SEGMENT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cluster/rpc/shared_memory.h"

namespace parasol {

// A rank's description of a sum that it begins. Read by the others once it has
// arrived at the sum's first chunk.
struct SharedPost {
  static constexpr size_t kMaxContributions = 32;
  // The place of a contribution that is copied to the segment chunk by chunk.
  static constexpr uint32_t kCopied = UINT32_MAX;

  uint64_t sequence = 0;
  uint64_t kind = 0;
  uint64_t count = 0;  // elements
  // Each contribution's allocation, and its place there.
  uint32_t allocation[kMaxContributions] = {};
  uint64_t first[kMaxContributions] = {};
};

// The words of a segment. Their owner alone writes them, but for `doorbell`.
struct SharedWords {
  static constexpr size_t kPosts = 4;
  static constexpr size_t kMaxAllocations = 256;
  static constexpr size_t kOfferBytes = 248;

  // An allocation, as the others open it. Written before the first post that
  // names it.
  struct Allocation {
    uint64_t bytes = 0;
    char offer[kOfferBytes] = {};
  };

  // Chunks that the rank has brought its contributions to, and chunks whose
  // slice it has added. It arrives at a chunk when it has done with the one
  // before.
  alignas(64) std::atomic<uint64_t> arrived;
  alignas(64) std::atomic<uint64_t> reduced;
  // Changes when the rank may have to wake up; 1 while it may sleep.
  alignas(64) std::atomic<uint32_t> doorbell;
  std::atomic<uint32_t> sleeps;
  // The core that the rank was on when it last counted.
  std::atomic<int32_t> core;
  // 1 when the counts above will not change any more.
  std::atomic<uint32_t> has_left;
  alignas(64) SharedPost posts[kPosts];
  Allocation allocations[kMaxAllocations];
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);
static_assert(std::atomic<uint32_t>::is_always_lock_free);

// The memory through which one rank and the others of its machine sum: words,
// and two slots each for contributions and for sums, used in turn.
class SharedSegment {
 public:
  static constexpr size_t kSlotBytes = 1 << 20;

  // Creates the own rank's.
  //   Unavailable  the system gives none.
  static absl::StatusOr<std::unique_ptr<SharedSegment>> Create();
  // Opens another rank's. Errors are SharedMemory::Open()'s.
  static absl::StatusOr<std::unique_ptr<SharedSegment>> Open(
      const std::string& offer);

  const std::string& offer() const { return memory_->offer(); }
  SharedWords& words() const {
    return *reinterpret_cast<SharedWords*>(memory_->data());
  }
  float* contributions(uint64_t chunk) const { return Slot(chunk % 2); }
  float* sums(uint64_t chunk) const { return Slot(2 + chunk % 2); }

  // Wakes the owner, if it sleeps.
  void Ring() const;
  // Sleeps until Ring() or until `limit` has passed, unless the doorbell is not
  // `seen` any more. The owner has set `sleeps`.
  void Sleep(uint32_t seen, absl::Duration limit) const;

 private:
  explicit SharedSegment(std::shared_ptr<SharedMemory> memory)
      : memory_(std::move(memory)) {}
  float* Slot(uint64_t slot) const;

  const std::shared_ptr<SharedMemory> memory_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_COLLECTIVE_SHARED_SEGMENT_H_
