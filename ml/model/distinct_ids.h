#ifndef PARASOL_ML_MODEL_DISTINCT_IDS_H_
#define PARASOL_ML_MODEL_DISTINCT_IDS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace parasol {

// The distinct ids of a batch, numbered in the order in which they are first
// seen, or of their stripes. Its memory is used again. Not thread-safe.
class DistinctIds {
 public:
  // Forgets all ids, in constant time.
  void Clear();

  // Writes the number of each of `ids` to `positions`, which is as long as
  // `ids`. At most 2^31 ids in all may be added between two calls of Clear().
  void Add(absl::Span<const uint64_t> ids, int32_t* positions);

  // Numbers the ids anew, in the order of their stripes (base/row_hash.h), and
  // changes `positions`, what all calls of Add() have written. Call Clear()
  // before the next Add().
  void SortByStripe(absl::Span<std::vector<int32_t>> positions);

  // The distinct ids, indexed by their numbers. Valid until the next call of
  // another function.
  absl::Span<const uint64_t> ids() const { return ids_; }

 private:
  // A slot of a hash table with open addressing. The number of slots is a power
  // of two that is more than twice the number of ids. A slot whose `round` is
  // not the present one is empty.
  struct Slot {
    uint64_t id = 0;
    int32_t number = 0;
    uint32_t round = 0;
  };

  void Reserve(size_t ids);
  // Returns the slot of `id`, or the empty slot where it belongs.
  Slot& Find(uint64_t id);

  std::vector<Slot> slots_;
  uint32_t round_ = 1;
  std::vector<uint64_t> ids_;
  // Memory of SortByStripe().
  std::vector<uint64_t> unsorted_;
  std::vector<int32_t> numbers_;
};

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_DISTINCT_IDS_H_
