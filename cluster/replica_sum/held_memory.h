#ifndef PARASOL_CLUSTER_REPLICA_SUM_HELD_MEMORY_H_
#define PARASOL_CLUSTER_REPLICA_SUM_HELD_MEMORY_H_

#include <cstddef>
#include <memory>
#include <utility>

#include "cluster/rows/row_memory.h"

namespace parasol {

// Bytes that are taken of a RowMemory until the object is destroyed.
class HeldMemory {
 public:
  HeldMemory() = default;
  // `memory` may be null: nothing is counted then.
  HeldMemory(std::shared_ptr<RowMemory> memory, size_t bytes)
      : memory_(std::move(memory)), bytes_(bytes) {
    if (memory_ != nullptr) memory_->Take(bytes_);
  }
  HeldMemory(HeldMemory&& other) noexcept
      : memory_(std::move(other.memory_)), bytes_(other.bytes_) {}
  HeldMemory& operator=(HeldMemory&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~HeldMemory() {
    if (memory_ != nullptr) memory_->Return(bytes_);
  }

 private:
  std::shared_ptr<RowMemory> memory_;
  size_t bytes_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_REPLICA_SUM_HELD_MEMORY_H_
