#ifndef PARASOL_THIRD_PARTY_CUDA_ON_HOST_MEMORY_H_
#define PARASOL_THIRD_PARTY_CUDA_ON_HOST_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>

// The memory of the devices and pinned memory. Each allocation has pages of its
// own and a page behind it that nobody may touch. Fresh memory is poisoned: as
// float32 it is NaN. Freed memory cannot be touched. All functions need the
// runtime's lock.
namespace cuda_on_host {

inline constexpr int kPinned = -1;

struct Allocation {
  char* data = nullptr;
  size_t bytes = 0;
  int device = kPinned;
  // State that check.cc keeps for each word.
  std::shared_ptr<void> shadow = nullptr;
};

// Returns null if `device` is full.
void* Allocate(size_t bytes, int device);
// Returns false if `data` is the beginning of no such allocation.
bool Free(void* data, bool pinned);
// Returns the number of calls of Free() so far.
uint64_t Frees();
// Returns the allocation that `address` lies in, or null.
Allocation* FindAllocation(const void* address);
// Returns true if all of [address, address + bytes) lies in one allocation.
bool IsInside(const void* address, size_t bytes);

}  // namespace cuda_on_host

#endif  // PARASOL_THIRD_PARTY_CUDA_ON_HOST_MEMORY_H_
