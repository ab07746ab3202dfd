#ifndef PARASOL_PS_ROWS_DISTINCT_ROWS_H_
#define PARASOL_PS_ROWS_DISTINCT_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "ps/rows/striped_ids.h"

namespace parasol {

// The distinct ids of one stripe's run, in the order in which they first
// appear, and for each the sum of its gradients. Keeps its memory.
class DistinctRows {
 public:
  void Assign(const StripedIds::Run& run);

  // Hashes and, in the request, positions of first appearance.
  const StripedIds::Run& rows() const { return rows_; }

  // Gradient i is at gradients + positions[i] * width float32, at any
  // alignment. The sums, in the order of rows(): rows().hashes.size() x width;
  // added up in the order of appearance.
  const float* Sum(const std::byte* gradients, size_t width);

 private:
  void AssignWithDuplicate(size_t first);
  uint32_t& SlotOf(uint64_t hash);

  StripedIds::Run run_;
  StripedIds::Run rows_;
  // Number + 1 of a distinct row by the low bits of its hash; 0: none.
  std::vector<uint32_t> seen_;
  std::vector<uint32_t> numbers_;  // of the run's ids; empty: 0, 1, 2, …
  std::vector<uint64_t> hashes_;
  std::vector<uint32_t> positions_;
  std::vector<float> sums_;
};

}  // namespace parasol

#endif  // PARASOL_PS_ROWS_DISTINCT_ROWS_H_
