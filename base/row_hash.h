#ifndef PARASOL_BASE_ROW_HASH_H_
#define PARASOL_BASE_ROW_HASH_H_

#include <cstddef>
#include <cstdint>

namespace parasol {

// Returns the hash of a sparse row's id by which a table keeps its rows.
//
// The function is MurmurHash3's finalizer. It is a bijection, so a table keeps
// hashes in place of ids. It differs from the function that chooses the shard,
// so the ids of one shard are spread over all stripes.
inline uint64_t RowHash(uint64_t id) {
  uint64_t h = id ^ 0x9e3779b97f4a7c15;
  h = (h ^ (h >> 33)) * 0xff51afd7ed558ccd;
  h = (h ^ (h >> 33)) * 0xc4ceb9fe1a85ec53;
  return h ^ (h >> 33);
}

// Returns the id whose hash is `hash`.
inline uint64_t RowIdOf(uint64_t hash) {
  uint64_t id = (hash ^ (hash >> 33)) * 0x9cb4b2f8129337db;
  id = (id ^ (id >> 33)) * 0x4f74430c22a54005;
  return (id ^ (id >> 33)) ^ 0x9e3779b97f4a7c15;
}

// Number of stripes of a table, as a power of two. The high bits of the hash
// give the stripe; a stripe's index uses the low ones. A batch has its ids in
// the order of their stripes, so that a table can take them as they come; any
// other order gives the same values.
inline constexpr int kRowStripeBits = 7;
inline constexpr size_t kRowStripes = size_t{1} << kRowStripeBits;

inline size_t StripeOf(uint64_t hash) { return hash >> (64 - kRowStripeBits); }

}  // namespace parasol

#endif  // PARASOL_BASE_ROW_HASH_H_
