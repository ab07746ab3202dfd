#ifndef PARASOL_PS_DENSE_ARRAY_POOL_H_
#define PARASOL_PS_DENSE_ARRAY_POOL_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"

namespace parasol {

class ArrayPool;

// A counted reference to an array of float32, 64-byte aligned. May be null.
//
// The holder of a reference that no other thread can copy may write to the
// array when IsUnique() returns true: all other holders have finished reading
// by then. Different references may be used by different threads.
class ArrayRef {
 public:
  ArrayRef() = default;
  ArrayRef(const ArrayRef& other) : ArrayRef(other.array_) {
    if (array_ != nullptr) {
      array_->references.fetch_add(1, std::memory_order_relaxed);
    }
  }
  ArrayRef(ArrayRef&& other) noexcept
      : array_(std::exchange(other.array_, nullptr)) {}
  ArrayRef& operator=(ArrayRef other) noexcept {
    std::swap(array_, other.array_);
    return *this;
  }
  ~ArrayRef() { Release(); }

  explicit operator bool() const { return array_ != nullptr; }
  float* data() const { return array_->data; }
  size_t size() const { return array_->size; }
  absl::Span<float> span() const { return {array_->data, array_->size}; }

  bool IsUnique() const {
    return array_->references.load(std::memory_order_acquire) == 1;
  }

 private:
  friend class ArrayPool;
  struct Array {
    float* data = nullptr;
    size_t size = 0;
    std::atomic<int> references = 1;
    // The pool to return to; null while the array is idle.
    std::shared_ptr<ArrayPool> pool = nullptr;
  };

  explicit ArrayRef(Array* array) : array_(array) {}
  void Release();

  Array* array_ = nullptr;
};

// A source of arrays. Freed arrays of the one size that is needed all the time
// are kept for reuse: the page faults of fresh memory cost more than the work
// on an array. Arrays may outlive their creator's reference to the pool.
// Thread-safe.
class ArrayPool : public std::enable_shared_from_this<ArrayPool> {
 public:
  // Keeps up to `max_idle` arrays of `pooled_size` elements.
  static std::shared_ptr<ArrayPool> Create(size_t pooled_size, size_t max_idle);
  ~ArrayPool();
  ArrayPool(const ArrayPool&) = delete;
  ArrayPool& operator=(const ArrayPool&) = delete;

  // Returns an array of `size` elements of any value, or null if there is no
  // memory.
  ArrayRef TryAllocate(size_t size);
  // Returns the same, but ends the process if there is no memory.
  ArrayRef Allocate(size_t size);

  size_t idle() const;

 private:
  friend class ArrayRef;
  ArrayPool(size_t pooled_size, size_t max_idle)
      : pooled_size_(pooled_size), max_idle_(max_idle) {}

  static void Free(ArrayRef::Array* array);
  void Recycle(ArrayRef::Array* array);

  const size_t pooled_size_;
  const size_t max_idle_;
  mutable absl::Mutex mu_;
  std::vector<ArrayRef::Array*> idle_ ABSL_GUARDED_BY(mu_);
};

}  // namespace parasol

#endif  // PARASOL_PS_DENSE_ARRAY_POOL_H_
