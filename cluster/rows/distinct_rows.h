#ifndef PARASOL_CLUSTER_ROWS_DISTINCT_ROWS_H_
#define PARASOL_CLUSTER_ROWS_DISTINCT_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "cluster/rows/striped_ids.h"

namespace parasol {

// The distinct ids of one stripe's run, in the order in which they first
// appear, and the sum of each id's gradients. Its memory is kept from one run
// to the next.
class DistinctRows {
 public:
  void Assign(const StripedIds::Run& run);

  // The distinct ids' hashes, and the positions in the request at which they
  // first appear.
  const StripedIds::Run& rows() const { return rows_; }

  // Returns the addresses of the sums of rows() in their order, `width` float32
  // each, added up in the order of appearance. Gradient i is at gradients +
  // positions[i] * width float32, at any alignment; it is itself the sum of an
  // id that is not repeated.
  absl::Span<const std::byte* const> Sum(const std::byte* gradients,
                                         size_t width);

  // Returns how often each of rows() occurs: the sum of the numbers that
  // `counts`, uint32 at any alignment, has for it, at least 1; null: as often
  // as it is listed.
  absl::Span<const uint32_t> Counts(const std::byte* counts);

  // Copies each repeated id's row of `width` floats in `rows`, which has the
  // rows of the whole request, from its first place to its others.
  void CopyToRepeated(size_t width, float* rows) const;

 private:
  void AssignWithDuplicate(size_t first);
  uint32_t& SlotOf(uint64_t hash);

  StripedIds::Run run_;
  StripedIds::Run rows_;
  // The number + 1 of a distinct row, at an index made of the low bits of its
  // hash; 0 if there is none.
  std::vector<uint32_t> seen_;
  // The row number of each of the run's ids; empty: 0, 1, 2, …
  std::vector<uint32_t> numbers_;
  std::vector<uint64_t> hashes_;
  std::vector<uint32_t> positions_;
  std::vector<const std::byte*> sum_of_;
  std::vector<float> sums_;  // room for one of each repeated id
  std::vector<uint32_t> counts_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_ROWS_DISTINCT_ROWS_H_
