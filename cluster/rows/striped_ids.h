#ifndef PARASOL_CLUSTER_ROWS_STRIPED_IDS_H_
#define PARASOL_CLUSTER_ROWS_STRIPED_IDS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "base/row_hash.h"

namespace parasol {

// The ids of one request, sorted by stripe. Within a stripe they keep their
// order. Its memory is kept from one request to the next.
class StripedIds {
 public:
  // The ids of one stripe. hashes[i] is the hash of the id at positions[i] of
  // the request. Positions ascend.
  struct Run {
    absl::Span<const uint64_t> hashes;
    absl::Span<const uint32_t> positions;

    size_t size() const { return hashes.size(); }
    // Returns at most `count` of them, from index `first` on.
    Run subrun(size_t first, size_t count) const {
      return {hashes.subspan(first, count), positions.subspan(first, count)};
    }
  };

  // `ids`: count uint64 in the machine's byte order, at any alignment. Those
  // that come sorted are not moved.
  void Assign(const std::byte* ids, size_t count);

  Run run(size_t stripe) const {
    const size_t begin = begin_[stripe];
    const size_t count = begin_[stripe + 1] - begin;
    return Run{hashes_, positions_}.subrun(begin, count);
  }

  size_t size() const { return hashes_.size(); }

 private:
  std::vector<uint64_t> unsorted_;  // hashes in the request's order
  std::vector<uint64_t> hashes_;
  std::vector<uint32_t> positions_;
  std::array<uint32_t, kRowStripes + 1> begin_ = {};
};

// Returns the i-th uint64 of `ids`, at any alignment.
inline uint64_t LoadId(const std::byte* ids, size_t i) {
  uint64_t id;
  __builtin_memcpy(&id, ids + i * sizeof(id), sizeof(id));
  return id;
}

}  // namespace parasol

#endif  // PARASOL_CLUSTER_ROWS_STRIPED_IDS_H_
