#ifndef PARASOL_WORKER_LOCAL_HOST_ROWS_H_
#define PARASOL_WORKER_LOCAL_HOST_ROWS_H_

#include <cstddef>
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

#endif  // PARASOL_WORKER_LOCAL_HOST_ROWS_H_
