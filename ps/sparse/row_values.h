#ifndef PARASOL_PS_SPARSE_ROW_VALUES_H_
#define PARASOL_PS_SPARSE_ROW_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "cluster/replica_sum/held_memory.h"

namespace parasol {

// The values of some rows of a table at one moment. Immutable.
class RowValues {
 public:
  // `values` has `width` elements for each of `ids`, which are distinct.
  // `memory` is what they take.
  RowValues(const std::vector<uint64_t>& ids, std::vector<float> values,
            size_t width, HeldMemory memory);

  // Overwrites the rows whose ids are here. `ids`: count uint64 at any
  // alignment; `rows`: count x width elements, a row for each id.
  void CopyTo(const std::byte* ids, size_t count, float* rows) const;

 private:
  const size_t width_;
  const std::vector<float> values_;
  absl::flat_hash_map<uint64_t, size_t> places_;
  const HeldMemory memory_;
};

}  // namespace parasol

#endif  // PARASOL_PS_SPARSE_ROW_VALUES_H_
