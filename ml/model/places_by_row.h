#ifndef PARASOL_ML_MODEL_PLACES_BY_ROW_H_
#define PARASOL_ML_MODEL_PLACES_BY_ROW_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace parasol {

// The places at which an input looks rows up, row by row: the arrays of a
// RowPlaces, on the host. Its memory is used again. Not thread-safe.
class PlacesByRow {
 public:
  // Assigns the places of one batch. Example i has the places [offsets[i],
  // offsets[i + 1]), place p looks up row positions[p], below `num_rows`. Rows
  // come in the order in which they are first looked up. Linear in the number
  // of places.
  void Assign(absl::Span<const int32_t> offsets,
              absl::Span<const int32_t> positions, size_t num_rows);

  // The number of rows, then each row's position.
  absl::Span<const int32_t> counted_rows() const { return counted_rows_; }
  absl::Span<const int32_t> starts() const { return starts_; }
  absl::Span<const int32_t> places() const { return places_; }
  // The example of each of places().
  absl::Span<const int32_t> examples() const { return examples_; }

 private:
  std::vector<int32_t> counted_rows_;
  std::vector<int32_t> starts_;
  std::vector<int32_t> places_;
  std::vector<int32_t> examples_;
  // The index of each row in counted_rows_, 0 if it has none, between calls
  // for all.
  std::vector<int32_t> index_;
  std::vector<int32_t> next_;  // place of each row that is written next
};

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_PLACES_BY_ROW_H_
