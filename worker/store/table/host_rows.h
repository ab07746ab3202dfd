#ifndef PARASOL_WORKER_STORE_TABLE_HOST_ROWS_H_
#define PARASOL_WORKER_STORE_TABLE_HOST_ROWS_H_

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cluster/rows/row_arena.h"

namespace parasol {

// Room for a table's rows in host memory, by their numbers, in blocks that stay
// where they are. Memory is taken when it is first written, 2 MiB at a time.
// Not thread-safe.
class HostRows {
 public:
  // Rows have `floats` elements, and a block has 2^`shift` rows.
  HostRows(size_t floats, int shift) : floats_(floats), shift_(shift) {}

  // Makes room for `rows` rows in all, of any values.
  void Reserve(size_t rows) {
    const size_t bytes = (floats_ << shift_) * sizeof(float);
    while (blocks_.size() << shift_ < rows) {
      blocks_.push_back(static_cast<float*>(arena_.Allocate(bytes)));
    }
  }

  // Gives back the memory of the block that row `number` is in. Its rows have
  // any values then.
  void Forget(size_t number) {
    constexpr uintptr_t kPage = 4096;
    const auto begin = reinterpret_cast<uintptr_t>(blocks_[number >> shift_]);
    const uintptr_t end = begin + (floats_ << shift_) * sizeof(float);
    // Pages that other blocks have a part of stay.
    const uintptr_t first = (begin + kPage - 1) / kPage * kPage;
    const uintptr_t last = end / kPage * kPage;
    if (first < last) {
      madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
    }
  }

  float* row(size_t number) const {
    const size_t in_block = number & ((size_t{1} << shift_) - 1);
    return blocks_[number >> shift_] + in_block * floats_;
  }

 private:
  const size_t floats_;
  const int shift_;
  RowArena arena_;
  std::vector<float*> blocks_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_STORE_TABLE_HOST_ROWS_H_
