#ifndef PARASOL_CLUSTER_ROWS_ROW_INDEX_H_
#define PARASOL_CLUSTER_ROWS_ROW_INDEX_H_

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cstddef>
#include <cstdint>
#include <optional>

#include "cluster/rows/row_arena.h"

namespace parasol {

// A map from hashes to row numbers: open addressing in buckets of one cache
// line, five entries each, a power of two of them. A full bucket continues in
// the next one. At the usual loads 95 % of the rows are in their own bucket:
// one cache miss finds them.
//
// Growing doubles the buckets and moves all entries at once; it never shrinks.
// Not thread-safe.
class RowIndex {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  // Grows when more than the fraction `max_load` (below 1) of the entries is in
  // use. Tables with many indexes give each index another load, so that they
  // don't grow together. `arena` must outlive the index.
  RowIndex(RowArena& arena, double max_load);
  ~RowIndex();
  RowIndex(const RowIndex&) = delete;
  RowIndex& operator=(const RowIndex&) = delete;

  void Prefetch(uint64_t hash) const {
    __builtin_prefetch(&buckets_[hash & mask_]);
  }

  // Returns the row number, or kNone if `hash` is not there.
  uint32_t Find(uint64_t hash) const {
    for (size_t b = hash & mask_;; b = (b + 1) & mask_) {
      const Bucket& bucket = buckets_[b];
      if (const uint32_t found = bucket.Match(hash)) {
        return bucket.rows[__builtin_ctz(found)];
      }
      if (bucket.count < kEntries) return kNone;
    }
  }

#if defined(__x86_64__)
  // Does what Find() does, in code that is compiled for AVX2.
  __attribute__((target("avx2"))) uint32_t FindWithAvx2(uint64_t hash) const {
    const __m256i wanted = _mm256_set1_epi64x(static_cast<int64_t>(hash));
    for (size_t b = hash & mask_;; b = (b + 1) & mask_) {
      const Bucket& bucket = buckets_[b];
      const __m256i equal = _mm256_cmpeq_epi64(
          wanted, *reinterpret_cast<const __m256i*>(bucket.hashes));
      const uint32_t last = bucket.hashes[4] == hash;
      const uint32_t found =
          (_mm256_movemask_pd(_mm256_castsi256_pd(equal)) | last << 4) &
          ((1u << bucket.count) - 1);
      if (found != 0) return bucket.rows[__builtin_ctz(found)];
      if (bucket.count < kEntries) return kNone;
    }
  }
#endif

  // `hash` must not be there yet, `row` must not be kNone.
  void Insert(uint64_t hash, uint32_t row);

  // Gives `hash`, which must be there, another row number.
  void Renumber(uint64_t hash, uint32_t row);
  // Takes `hash`, which must be there, out.
  void Erase(uint64_t hash);

  size_t size() const { return size_; }

 private:
  static constexpr uint32_t kEntries = 5;

  struct alignas(64) Bucket {
    uint64_t hashes[kEntries];
    uint32_t rows[kEntries];
    uint32_t count;

    // Returns a bit set: bit i is set if entry i has that hash. Without
    // branches: the position of a row within its bucket cannot be predicted.
    uint32_t Match(uint64_t hash) const {
      uint32_t equal = 0;
#pragma GCC unroll 5
      for (uint32_t i = 0; i < kEntries; ++i) {
        equal |= static_cast<uint32_t>(hashes[i] == hash) << i;
      }
      return equal & ((1u << count) - 1);
    }
  };

  // A place in a bucket.
  struct Place {
    size_t bucket;
    uint32_t entry;
  };
  Place PlaceOf(uint64_t hash) const;
  // Returns the place of the first entry behind a bucket, which was full, that
  // is sought in that bucket before.
  std::optional<Place> FirstSoughtIn(size_t bucket) const;
  void Allocate(size_t buckets);
  void Put(uint64_t hash, uint32_t row);
  void Grow();

  RowArena& arena_;
  const double max_load_;
  Bucket* buckets_ = nullptr;
  size_t mask_ = 0;  // number of buckets - 1
  size_t size_ = 0;
  size_t limit_ = 0;  // the index grows before it has more entries
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_ROWS_ROW_INDEX_H_
