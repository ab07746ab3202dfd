#ifndef PARASOL_CLUSTER_ROWS_ROW_BLOCK_H_
#define PARASOL_CLUSTER_ROWS_ROW_BLOCK_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "cluster/rows/row_arena.h"

namespace parasol {

// The layout of a table's rows in memory: `width` values, then the elements of
// each slot (Optimizer::FloatsOfRow()), float32. Where the values are bfloat16,
// two of them are in one of a row's words; only what follows here looks into it
// then.
struct RowLayout {
  // `timed`: a row has the update that touched it last, beside its elements.
  RowLayout(size_t width, size_t floats, bool timed = false,
            bool bfloat16 = false);

  size_t rows_per_block() const { return size_t{1} << block_shift; }
  size_t block_bytes() const;
  // Bytes of memory per row, without the index.
  size_t bytes_per_row() const { return block_bytes() >> block_shift; }
  // The words of the values, the first ones of a row.
  size_t value_words() const { return words - (floats - width); }

  // Copies the values of a row, `width` float32.
  void ReadValues(const float* row, float* values) const {
    if (bfloat16) return WidenValues(row, values);
    std::memcpy(values, row, width * sizeof(float));
  }
  // Copies values and slots of a row, `floats` float32.
  void Read(const float* row, float* elements) const;
  // Sets values, which are rounded to nearest, and slots of a row.
  void Write(const float* elements, float* row) const;
  // Does the same, but rounds values at random (EncodeAtRandom()).
  void WriteAtRandom(const float* elements, uint64_t key, float* row) const;

  size_t width;
  size_t floats;  // number of values and slot elements of a row
  size_t words;   // words of 4 bytes that have them
  // distance of two rows: few cache lines for a row, and little space between
  size_t row_bytes;
  int block_shift;  // log2 of the number of rows of a block
  bool timed;
  bool bfloat16;

 private:
  void WidenValues(const float* row, float* values) const;
  void WriteSlots(const float* elements, float* row) const;
};

// A counted reference to a block. A block is the unit in which rows are
// allocated, shared with snapshots and copied on write. May be null. Rows never
// move within a block.
//
// Different references may be used by different threads. The holder of a
// reference that no other thread can copy may write to the block when
// IsUnique() returns true.
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

  // Returns a block with rows and ids of any value. `arena` must outlive it.
  static RowBlock Allocate(RowArena& arena, const RowLayout& layout);
  // Returns a new block with the same contents.
  RowBlock Copy(const RowLayout& layout) const;

  bool IsUnique() const {
    return header_->references.load(std::memory_order_acquire) == 1;
  }

  float* row(size_t i, const RowLayout& layout) const {
    return reinterpret_cast<float*>(rows() + i * layout.row_bytes);
  }
  // The ids of the block's rows: rows_per_block() of them.
  uint64_t* ids(const RowLayout& layout) const {
    return reinterpret_cast<uint64_t*>(
        rows() + (layout.row_bytes << layout.block_shift));
  }
  // The updates that touched the block's rows last: as many as ids. Only if the
  // layout is timed.
  int64_t* touched(const RowLayout& layout) const {
    return reinterpret_cast<int64_t*>(ids(layout) + layout.rows_per_block());
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

#endif  // PARASOL_CLUSTER_ROWS_ROW_BLOCK_H_
