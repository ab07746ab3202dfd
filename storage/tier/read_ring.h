#ifndef PARASOL_STORAGE_TIER_READ_RING_H_
#define PARASOL_STORAGE_TIER_READ_RING_H_

#include <linux/io_uring.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "base/descriptor.h"
#include "storage/tier/tier_file.h"

namespace parasol {

// Reads that are under way together, by the kernel's io_uring: a third of the
// processor time that threads with pread() take. Used by one thread at a time.
class ReadRing {
 public:
  // Returns null where the kernel has none, or forbids it, as containers often
  // do.
  static std::unique_ptr<ReadRing> CreateIfThere();
  ~ReadRing();
  ReadRing(const ReadRing&) = delete;
  ReadRing& operator=(const ReadRing&) = delete;

  // Carries out readings of the open file `descriptor`. Returns the numbers of
  // those that have failed or ended early, to be carried out otherwise.
  std::vector<size_t> Read(int descriptor,
                           absl::Span<const TierFile::Reading> readings);

 private:
  // A queue that the kernel shares.
  struct Queue {
    unsigned* head;
    unsigned* tail;
    unsigned mask;
  };

  ReadRing(Descriptor ring, const io_uring_params& params);
  bool Map();
  // Puts a reading into the queue, as number `number`.
  void Submit(int descriptor, const TierFile::Reading& reading, size_t number);
  // Hands `count` new readings to the kernel and waits for `wanted` results.
  void Enter(unsigned count, unsigned wanted);

  const Descriptor ring_;
  const io_uring_params params_;
  std::byte* queues_ = nullptr;
  size_t queue_bytes_ = 0;
  io_uring_sqe* entries_ = nullptr;
  unsigned* order_ = nullptr;  // numbers of entries_, as they are submitted
  io_uring_cqe* results_ = nullptr;
  Queue submitted_ = {};
  Queue completed_ = {};
};

}  // namespace parasol

#endif  // PARASOL_STORAGE_TIER_READ_RING_H_
