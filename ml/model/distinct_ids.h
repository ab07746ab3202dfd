#ifndef PARASOL_ML_MODEL_DISTINCT_IDS_H_
#define PARASOL_ML_MODEL_DISTINCT_IDS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace parasol {

// The different ones of a batch's ids, numbered in the order in which they were
// first seen. Its memory is used again. Not thread-safe.
class DistinctIds {
 public:
  // Forgets all ids, in constant time.
  void Clear();

  // Writes to `positions`, as long as `ids`, each one's number. At most 2^31
  // ids in all between two Clear().
  void Add(absl::Span<const uint64_t> ids, int32_t* positions);

  // By number. Valid until the next Add() or Clear().
  absl::Span<const uint64_t> ids() const { return ids_; }

 private:
  // Of a hash table with open addressing, a power of two that is more than
  // twice the ids in it. A slot of another round is empty.
  struct Slot {
    uint64_t id = 0;
    int32_t number = 0;
    uint32_t round = 0;
  };

  void Reserve(size_t ids);
  // That of `id`, or the empty one where it belongs.
  Slot& Find(uint64_t id);

  std::vector<Slot> slots_;
  uint32_t round_ = 1;
  std::vector<uint64_t> ids_;
};

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_DISTINCT_IDS_H_
