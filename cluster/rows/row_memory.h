#ifndef PARASOL_CLUSTER_ROWS_ROW_MEMORY_H_
#define PARASOL_CLUSTER_ROWS_ROW_MEMORY_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace parasol {

// The limit on the memory that the rows of all sparse tables of a shard, and
// the gradients that wait for their synchronous step, take together, and the
// bytes that they take now. Not counted are copies that a snapshot makes
// necessary and freed memory that is kept for reuse: a checkpoint never makes a
// table full. Thread-safe.
class RowMemory {
 public:
  explicit RowMemory(size_t limit_bytes = SIZE_MAX)
      : limit_bytes_(limit_bytes) {}

  // Adds `bytes`, even beyond the limit.
  void Take(size_t bytes) {
    taken_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  }

  // Takes `bytes` back that Take() has added.
  void Return(size_t bytes) {
    taken_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  }

  size_t limit_bytes() const { return limit_bytes_; }
  size_t taken_bytes() const {
    return taken_bytes_.load(std::memory_order_relaxed);
  }
  size_t free_bytes() const {
    return limit_bytes_ - std::min(taken_bytes(), limit_bytes_);
  }

 private:
  const size_t limit_bytes_;
  std::atomic<size_t> taken_bytes_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_ROWS_ROW_MEMORY_H_
