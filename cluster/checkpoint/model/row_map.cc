#include "cluster/checkpoint/model/row_map.h"

#include <algorithm>

#include "base/row_hash.h"

namespace parasol {
namespace {

constexpr size_t kPieceBytes = 1 << 20;

// Bytes of an entry of flat_hash_map, with its control byte.
constexpr size_t kEntryBytes = 2 * sizeof(uint64_t) + 1;

}  // namespace

RowMap::RowMap(size_t width) : width_(width), piece_bits_(0) {
  while ((width * sizeof(float) << (piece_bits_ + 1)) <= kPieceBytes) {
    ++piece_bits_;
  }
}

void RowMap::Set(uint64_t id, const float* values) {
  const auto [place, is_new] = places_.try_emplace(id, used_);
  if (is_new) {
    if (used_ == pieces_.size() << piece_bits_) {
      pieces_.push_back(
          std::make_unique_for_overwrite<float[]>(width_ << piece_bits_));
    }
    ++used_;
  }
  std::copy_n(values, width_, At(place->second));
}

size_t RowMap::BytesWith(size_t more) const {
  const size_t rows = places_.size() + more;
  size_t entries = places_.capacity();
  // It grows when 7 of 8 entries are in use, and moves all to another array.
  if (8 * rows > 7 * entries) {
    size_t larger = std::max<size_t>(entries, 1);
    while (8 * rows > 7 * larger) larger = 2 * larger + 1;
    entries += larger;
  }
  return rows * width_ * sizeof(float) + entries * kEntryBytes;
}

std::vector<HashedRow> RowMap::Sorted() const {
  std::vector<HashedRow> rows;
  rows.reserve(places_.size());
  for (const auto& [id, place] : places_) {
    rows.push_back({.hash = RowHash(id), .values = At(place)});
  }
  std::sort(
      rows.begin(), rows.end(),
      [](const HashedRow& a, const HashedRow& b) { return a.hash < b.hash; });
  return rows;
}

void RowMap::CopyTo(RowMap& other) const {
  for (const auto& [id, place] : places_) other.Set(id, At(place));
}

void RowMap::Clear() {
  places_.clear();
  used_ = 0;
}

}  // namespace parasol
