#include "cluster/rows/row_index.h"

namespace parasol {
namespace {

constexpr size_t kFirstBuckets = 16;

}  // namespace

RowIndex::RowIndex(RowArena& arena, double max_load)
    : arena_(arena), max_load_(max_load) {
  Allocate(kFirstBuckets);
}

RowIndex::~RowIndex() { arena_.Free(buckets_, (mask_ + 1) * sizeof(Bucket)); }

void RowIndex::Insert(uint64_t hash, uint32_t row) {
  if (size_ == limit_) Grow();
  Put(hash, row);
  ++size_;
}

RowIndex::Place RowIndex::PlaceOf(uint64_t hash) const {
  size_t b = hash & mask_;
  while (buckets_[b].Match(hash) == 0) b = (b + 1) & mask_;
  const uint32_t found = buckets_[b].Match(hash);
  return {.bucket = b, .entry = static_cast<uint32_t>(__builtin_ctz(found))};
}

void RowIndex::Renumber(uint64_t hash, uint32_t row) {
  const Place place = PlaceOf(hash);
  buckets_[place.bucket].rows[place.entry] = row;
}

// A bucket that was full continues in the next ones: the first entry behind it
// that would be sought there takes the free place, and leaves one itself.
void RowIndex::Erase(uint64_t hash) {
  Place hole = PlaceOf(hash);
  --size_;
  while (true) {
    Bucket& bucket = buckets_[hole.bucket];
    const bool was_full = bucket.count == kEntries;
    const uint32_t last = --bucket.count;
    bucket.hashes[hole.entry] = bucket.hashes[last];
    bucket.rows[hole.entry] = bucket.rows[last];
    if (!was_full) return;
    const std::optional<Place> moved = FirstSoughtIn(hole.bucket);
    if (!moved.has_value()) return;
    bucket.hashes[last] = buckets_[moved->bucket].hashes[moved->entry];
    bucket.rows[last] = buckets_[moved->bucket].rows[moved->entry];
    ++bucket.count;
    hole = *moved;
  }
}

std::optional<RowIndex::Place> RowIndex::FirstSoughtIn(size_t bucket) const {
  for (size_t behind = (bucket + 1) & mask_;; behind = (behind + 1) & mask_) {
    const Bucket& next = buckets_[behind];
    for (uint32_t i = 0; i < next.count; ++i) {
      const size_t from_home = (behind - next.hashes[i]) & mask_;
      if (from_home >= ((behind - bucket) & mask_)) {
        return Place{.bucket = behind, .entry = i};
      }
    }
    if (next.count < kEntries) return std::nullopt;
  }
}

void RowIndex::Allocate(size_t buckets) {
  buckets_ = static_cast<Bucket*>(arena_.Allocate(buckets * sizeof(Bucket)));
  for (size_t b = 0; b < buckets; ++b) buckets_[b].count = 0;
  mask_ = buckets - 1;
  limit_ = static_cast<size_t>(max_load_ * kEntries * buckets);
}

void RowIndex::Put(uint64_t hash, uint32_t row) {
  size_t b = hash & mask_;
  while (buckets_[b].count == kEntries) b = (b + 1) & mask_;
  Bucket& bucket = buckets_[b];
  bucket.hashes[bucket.count] = hash;
  bucket.rows[bucket.count] = row;
  ++bucket.count;
}

// The entries of bucket b go to b and b + half, but for a few: two streams of
// writes, which is as fast as copying.
void RowIndex::Grow() {
  Bucket* const old = buckets_;
  const size_t old_buckets = mask_ + 1;
  Allocate(2 * old_buckets);
  for (size_t b = 0; b < old_buckets; ++b) {
    for (uint32_t i = 0; i < old[b].count; ++i) {
      Put(old[b].hashes[i], old[b].rows[i]);
    }
  }
  arena_.Free(old, old_buckets * sizeof(Bucket));
}

}  // namespace parasol
