#ifndef PARASOL_PS_ROWS_ROW_BLOCK_H_
#define PARASOL_PS_ROWS_ROW_BLOCK_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "ps/rows/row_arena.h"

namespace parasol {

// How a table's rows lie in memory: `width` values, then `width` elements of
// each slot, float32.
struct RowLayout {
  RowLayout(size_t width, size_t slots);

  size_t rows_per_block() const { return size_t{1} << block_shift; }
  size_t block_bytes() const;
  // What a row costs in memory, without the index.
  size_t bytes_per_row() const { return block_bytes() >> block_shift; }

  size_t width;
  size_t floats;     // of values and slots
  size_t row_bytes;  // from a row to the next: it touches few cache lines
  int block_shift;   // a block has 2^block_shift rows
};

// A counted reference to a block: the unit in which rows are allocated, shared
// with cuts and copied on write. May be null. Rows never move within it.
//
// Different references may be used by different threads; whoever guards the
// only copy of one may write to the block when IsUnique() says yes.
class RowBlock {
 public:
  RowBlock() = default;
  RowBlock(const RowBlock& other) : header_(other.header_) {
    if (header_ != nullptr) {
      header_->references.fetch_add(1, std::memory_order_relaxed);
    }
  }
  RowBlock(RowBlock&& other) noexcept
      : header_(std::exchange(other.header_, nullptr)) {}
  RowBlock& operator=(RowBlock other) noexcept {
    std::swap(header_, other.header_);
    return *this;
  }
  ~RowBlock() { Release(); }

  // Rows and ids of any value. `arena` must outlive it.
  static RowBlock Allocate(RowArena& arena, const RowLayout& layout);
  // The same contents in a block of its own.
  RowBlock Copy(const RowLayout& layout) const;

  bool IsUnique() const {
    return header_->references.load(std::memory_order_acquire) == 1;
  }

  float* row(size_t i, const RowLayout& layout) const {
    return reinterpret_cast<float*>(rows() + i * layout.row_bytes);
  }
  // rows_per_block() of them, as the rows.
  uint64_t* ids(const RowLayout& layout) const {
    return reinterpret_cast<uint64_t*>(
        rows() + (layout.row_bytes << layout.block_shift));
  }

 private:
  struct alignas(64) Header {
    std::atomic<uint32_t> references = 1;
    RowArena* arena;
    size_t bytes;
  };

  explicit RowBlock(Header* header) : header_(header) {}
  std::byte* rows() const { return reinterpret_cast<std::byte*>(header_ + 1); }
  void Release();

  friend struct RowLayout;
  Header* header_ = nullptr;
};

}  // namespace parasol

#endif  // PARASOL_PS_ROWS_ROW_BLOCK_H_
