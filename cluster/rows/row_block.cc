#include "cluster/rows/row_block.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

#include "absl/types/span.h"
#include "ml/compression/half.h"
#include "ml/compression/random_rounding.h"
#include "proto/job.pb.h"

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
size_t RowBytes(size_t words) {
  const size_t bytes = words * sizeof(float);
  const size_t aligned =
      bytes <= kCacheLine ? std::bit_ceil(bytes)
                          : (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
  return aligned - bytes <= bytes / kWastedShare ? aligned : bytes;
}

}  // namespace

RowLayout::RowLayout(size_t width, size_t floats, bool timed, bool bfloat16)
    : width(width),
      floats(floats),
      words(bfloat16 ? floats - width / 2 : floats),
      row_bytes(RowBytes(words)),
      block_shift(std::bit_width(std::max(kBlockBytes / row_bytes, size_t{1})) -
                  1),
      timed(timed),
      bfloat16(bfloat16) {}

size_t RowLayout::block_bytes() const {
  const size_t of_row =
      row_bytes + sizeof(uint64_t) + (timed ? sizeof(int64_t) : 0);
  const size_t bytes = sizeof(RowBlock::Header) + (of_row << block_shift);
  return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
}

void RowLayout::WidenValues(const float* row, float* values) const {
  Decode(job::BFLOAT16, reinterpret_cast<const std::byte*>(row),
         absl::MakeSpan(values, width));
}

void RowLayout::WriteSlots(const float* elements, float* row) const {
  std::memcpy(row + value_words(), elements + width,
              (floats - width) * sizeof(float));
}

void RowLayout::Read(const float* row, float* elements) const {
  ReadValues(row, elements);
  std::memcpy(elements + width, row + value_words(),
              (floats - width) * sizeof(float));
}

void RowLayout::Write(const float* elements, float* row) const {
  Encode(bfloat16 ? job::BFLOAT16 : job::FLOAT32,
         absl::MakeSpan(elements, width), reinterpret_cast<std::byte*>(row));
  WriteSlots(elements, row);
}

void RowLayout::WriteAtRandom(const float* elements, uint64_t key,
                              float* row) const {
  EncodeAtRandom(absl::MakeSpan(elements, width), key,
                 reinterpret_cast<std::byte*>(row));
  WriteSlots(elements, row);
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
