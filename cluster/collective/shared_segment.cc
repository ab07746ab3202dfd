#include "cluster/collective/shared_segment.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>
#include <utility>

#include "absl/status/status.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

constexpr size_t kSegmentPage = 4096;
constexpr size_t kWordsBytes =
    (sizeof(SharedWords) + kSegmentPage - 1) / kSegmentPage * kSegmentPage;
constexpr size_t kBytes = kWordsBytes + 4 * SharedSegment::kSlotBytes;

// Other processes wait for the same word, so it is no private futex.
void Futex(std::atomic<uint32_t>& word, int operation, uint32_t value,
           const timespec* limit) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), operation, value,
          limit, nullptr, 0);
}

}  // namespace

absl::StatusOr<std::unique_ptr<SharedSegment>> SharedSegment::Create() {
  ASSIGN_OR_RETURN(std::shared_ptr<SharedMemory> memory,
                   SharedMemory::Create(kBytes));
  if (!memory->Populate(0, kBytes)) {
    return absl::UnavailableError("shared memory: the system has none left");
  }
  return std::unique_ptr<SharedSegment>(new SharedSegment(std::move(memory)));
}

absl::StatusOr<std::unique_ptr<SharedSegment>> SharedSegment::Open(
    const std::string& offer) {
  ASSIGN_OR_RETURN(std::shared_ptr<SharedMemory> memory,
                   SharedMemory::Open(offer, kBytes));
  return std::unique_ptr<SharedSegment>(new SharedSegment(std::move(memory)));
}

float* SharedSegment::Slot(uint64_t slot) const {
  return reinterpret_cast<float*>(memory_->data() + kWordsBytes +
                                  slot * kSlotBytes);
}

void SharedSegment::Ring() const {
  if (words().sleeps.load(std::memory_order_seq_cst) == 0) return;
  words().doorbell.fetch_add(1, std::memory_order_seq_cst);
  Futex(words().doorbell, FUTEX_WAKE, INT_MAX, nullptr);
}

void SharedSegment::Sleep(uint32_t seen, absl::Duration limit) const {
  const timespec time = absl::ToTimespec(limit);
  Futex(words().doorbell, FUTEX_WAIT, seen, &time);
}

}  // namespace parasol
