#ifndef PARASOL_ML_TAPE_TENSOR_MEMORY_H_
#define PARASOL_ML_TAPE_TENSOR_MEMORY_H_

#include <cstddef>
#include <memory>
#include <new>

namespace parasol {

// Memory that tensors and tapes give back and take again: a step like the last
// one asks the system for none. Blocks are kept by size, a quarter of a power
// of two apart, up to 1 GiB in all. Thread-safe. Under sanitizers each block is
// the system's own, so that they see its end.

// Returns a block of at least `bytes`, at a multiple of 64, of any contents;
// null if the system has none.
void* TakeTensorMemory(size_t bytes);
// Gives back a block; `bytes` as when it was taken.
void GiveTensorMemory(void* block, size_t bytes);

// Returns such a block, which goes back with its last owner; null if the system
// has none.
std::shared_ptr<void> NewTensorMemory(size_t bytes);

// An allocator of the standard library on this memory.
template <typename T>
class TensorAllocator {
 public:
  using value_type = T;

  TensorAllocator() = default;
  template <typename Other>
  TensorAllocator(const TensorAllocator<Other>&) {}  // NOLINT

  T* allocate(size_t size) {
    void* const block = TakeTensorMemory(size * sizeof(T));
    if (block == nullptr) throw std::bad_alloc();
    return static_cast<T*>(block);
  }
  void deallocate(T* block, size_t size) {
    GiveTensorMemory(block, size * sizeof(T));
  }
  friend bool operator==(TensorAllocator, TensorAllocator) { return true; }
};

}  // namespace parasol

#endif  // PARASOL_ML_TAPE_TENSOR_MEMORY_H_
