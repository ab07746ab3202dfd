#include "ml/tape/tensor_memory.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace parasol {
namespace {

constexpr std::align_val_t kAlignment{64};
constexpr size_t kSmallest = 64;
constexpr int kSteps = 4;  // between powers of two
constexpr int kPowers = 44;
constexpr int64_t kMostIdleBytes = int64_t{1} << 30;

#ifdef PARASOL_SANITIZER
constexpr bool kKeep = false;
#else
constexpr bool kKeep = true;
#endif

// Number and bytes of the smallest size of block that `bytes` fit in.
struct BlockSize {
  explicit BlockSize(size_t bytes) {
    bytes = std::max(bytes, kSmallest);
    const int power = std::bit_width(bytes - 1) - 1;  // 2^power < bytes
    const size_t step = (size_t{1} << power) / kSteps;
    const size_t steps = (bytes - 1 - (size_t{1} << power)) / step + 1;
    number = power * kSteps + static_cast<int>(steps);
    size = (size_t{1} << power) + steps * step;
  }

  int number;
  size_t size;
};

// Blocks that nobody uses, each with the address of the next one in it.
class IdleBlocks {
 public:
  void* Take() ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    void* const block = first_;
    if (block != nullptr) first_ = *static_cast<void**>(block);
    return block;
  }
  void Give(void* block) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    *static_cast<void**>(block) = first_;
    first_ = block;
  }

 private:
  absl::Mutex mu_;
  void* first_ ABSL_GUARDED_BY(mu_) = nullptr;
};

struct Idle {
  std::array<IdleBlocks, kPowers * kSteps> by_size;
  std::atomic<int64_t> bytes = 0;
};

// Never destroyed: threads may give blocks back when main() has ended.
Idle& TheIdle() {
  static Idle& idle = *new Idle;
  return idle;
}

bool IsKept(const BlockSize& block) {
  return kKeep && block.number < kPowers * kSteps;
}

}  // namespace

void* TakeTensorMemory(size_t bytes) {
  const BlockSize block(bytes);
  if (IsKept(block)) {
    Idle& idle = TheIdle();
    if (void* const kept = idle.by_size[block.number].Take()) {
      idle.bytes.fetch_sub(block.size, std::memory_order_relaxed);
      return kept;
    }
  }
  return ::operator new(block.size, kAlignment, std::nothrow);
}

void GiveTensorMemory(void* memory, size_t bytes) {
  const BlockSize block(bytes);
  Idle& idle = TheIdle();
  const int64_t size = static_cast<int64_t>(block.size);
  if (IsKept(block) &&
      idle.bytes.fetch_add(size, std::memory_order_relaxed) + size <=
          kMostIdleBytes) {
    idle.by_size[block.number].Give(memory);
    return;
  }
  if (IsKept(block)) idle.bytes.fetch_sub(size, std::memory_order_relaxed);
  ::operator delete(memory, kAlignment);
}

std::shared_ptr<void> NewTensorMemory(size_t bytes) {
  void* const block = TakeTensorMemory(bytes);
  if (block == nullptr) return nullptr;
  return std::shared_ptr<void>(
      block, [bytes](void* given) { GiveTensorMemory(given, bytes); },
      TensorAllocator<char>());
}

}  // namespace parasol
