#include "cluster/rows/row_block.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

namespace parasol {
namespace {

constexpr size_t kCacheLine = 64;

// What is copied at the first write after a snapshot, a few microseconds'
// worth. Smaller would cost more to refer to, larger more to copy for one row.
constexpr size_t kBlockBytes = 16 << 10;

// The part of a row's bytes that may be wasted behind it.
constexpr size_t kWastedShare = 8;

// A row begins where a cache line does, or does not straddle two, unless that
// wastes much: then rows lie close together. Such rows are of less than 8
// lines, so that a block has an even number of them, and the ids behind are
// aligned.
size_t RowBytes(size_t floats) {
  const size_t bytes = floats * sizeof(float);
  const size_t aligned =
      bytes <= kCacheLine ? std::bit_ceil(bytes)
                          : (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
  return aligned - bytes <= bytes / kWastedShare ? aligned : bytes;
}

}  // namespace

RowLayout::RowLayout(size_t width, size_t floats, bool timed)
    : width(width),
      floats(floats),
      row_bytes(RowBytes(floats)),
      block_shift(std::bit_width(std::max(kBlockBytes / row_bytes, size_t{1})) -
                  1),
      timed(timed) {}

size_t RowLayout::block_bytes() const {
  const size_t of_row =
      row_bytes + sizeof(uint64_t) + (timed ? sizeof(int64_t) : 0);
  const size_t bytes = sizeof(RowBlock::Header) + (of_row << block_shift);
  return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
}

RowBlock RowBlock::Allocate(RowArena& arena, const RowLayout& layout) {
  const size_t bytes = layout.block_bytes();
  return RowBlock(new (arena.Allocate(bytes))
                      Header{.arena = &arena, .bytes = bytes});
}

RowBlock RowBlock::Copy(const RowLayout& layout) const {
  RowBlock copy = Allocate(*header_->arena, layout);
  std::memcpy(copy.rows(), rows(), header_->bytes - sizeof(Header));
  return copy;
}

void RowBlock::Release() {
  if (header_ == nullptr) return;
  if (header_->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  header_->arena->Free(header_, header_->bytes);
}

}  // namespace parasol
