#ifndef PARASOL_CLUSTER_CHECKPOINT_MODEL_ROW_MAP_H_
#define PARASOL_CLUSTER_CHECKPOINT_MODEL_ROW_MAP_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "cluster/checkpoint/model/row_blocks_file.h"

namespace parasol {

// The values of rows in memory, by id: 4 bytes for each value and some 30 for
// each row. Values lie in pieces of a mebibyte, so that growing copies none.
// Move-only; not thread-safe.
class RowMap {
 public:
  explicit RowMap(size_t width);

  // Takes the `width` values of row `id`, in place of those before.
  void Set(uint64_t id, const float* values);
  // Returns the values of row `id`; null if there is no such row.
  const float* Find(uint64_t id) const {
    const auto place = places_.find(id);
    return place == places_.end() ? nullptr : At(place->second);
  }

  size_t rows() const { return places_.size(); }
  // Returns the bytes that the map has in memory once it has `more` rows more,
  // at the worst moment while it gets them.
  size_t BytesWith(size_t more) const;

  // Returns the rows in ascending order of their hashes. The values stay the
  // map's.
  std::vector<HashedRow> Sorted() const;
  // Gives `other` all rows, in place of those that it has.
  void CopyTo(RowMap& other) const;
  // Removes all rows, and keeps the memory of their values for others.
  void Clear();

 private:
  float* At(size_t place) const {
    return pieces_[place >> piece_bits_].get() +
           (place & ((size_t{1} << piece_bits_) - 1)) * width_;
  }

  size_t width_;
  int piece_bits_;  // a piece has 2^piece_bits_ rows
  absl::flat_hash_map<uint64_t, size_t> places_;
  size_t used_ = 0;  // places that are in use
  std::vector<std::unique_ptr<float[]>> pieces_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECKPOINT_MODEL_ROW_MAP_H_
