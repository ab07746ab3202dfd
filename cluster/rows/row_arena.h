#ifndef PARASOL_CLUSTER_ROWS_ROW_ARENA_H_
#define PARASOL_CLUSTER_ROWS_ROW_ARENA_H_

#include <atomic>
#include <cstddef>
#include <map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace parasol {

// Memory for one table's rows and their indexes, 64-byte aligned, in huge pages
// if the kernel has them: rows are touched at random, and with 4 KiB pages most
// touches would miss the TLB.
//
// Pieces come from regions, which the arena unmaps only when it is destroyed. A
// freed piece is used again for a piece of its size, or cut up for smaller
// ones. A piece of kRegionBytes / 8 or more is mapped alone, and unmapped when
// it is freed. Physical memory is taken when a page is first touched, 2 MiB at
// a time. Thread-safe.
class RowArena {
 public:
  static constexpr size_t kRegionBytes = 32 << 20;

  RowArena() = default;
  ~RowArena();
  RowArena(const RowArena&) = delete;
  RowArena& operator=(const RowArena&) = delete;

  // Returns `bytes` of any value. Having no address space ends the process.
  void* Allocate(size_t bytes) ABSL_LOCKS_EXCLUDED(mu_);
  // Frees `memory`; `bytes` must be the number given to Allocate().
  void Free(void* memory, size_t bytes) ABSL_LOCKS_EXCLUDED(mu_);

  // Bytes that pieces have taken of regions, freed ones included, plus the
  // pieces that are mapped alone. The physical memory differs by partly used
  // pages only.
  size_t allocated_bytes() const {
    return allocated_.load(std::memory_order_relaxed);
  }

 private:
  void* Carve(size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void FindRest(size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  std::atomic<size_t> allocated_ = 0;
  absl::Mutex mu_;
  std::vector<std::byte*> regions_ ABSL_GUARDED_BY(mu_);
  // The memory from which the next pieces are cut.
  std::byte* rest_ ABSL_GUARDED_BY(mu_) = nullptr;
  size_t rest_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  // True if `rest_` is a region's unused rest rather than a freed piece.
  bool rest_is_fresh_ ABSL_GUARDED_BY(mu_) = false;
  // Freed pieces; the key is their size in bytes.
  std::map<size_t, std::vector<void*>> freed_ ABSL_GUARDED_BY(mu_);
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_ROWS_ROW_ARENA_H_
