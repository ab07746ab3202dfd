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
