#include "ml/model/places_by_row.h"

#include <algorithm>

namespace parasol {

// A counting sort by the rows that there are.
void PlacesByRow::Assign(absl::Span<const int32_t> offsets,
                         absl::Span<const int32_t> positions, size_t num_rows) {
  if (index_.size() < num_rows) {
    index_.resize(std::max(num_rows, 3 * index_.size() / 2));
  }
  // Room for as many rows as places, and written without growing.
  counted_rows_.resize(positions.size() + 1);
  starts_.resize(positions.size() + 1);
  starts_[0] = 0;
  int32_t rows = 0;
  for (const int32_t position : positions) {
    int32_t& index = index_[position];
    if (index == 0) {
      index = ++rows;
      counted_rows_[index] = position;
      starts_[index] = 0;
    }
    ++starts_[index];
  }
  counted_rows_[0] = rows;
  counted_rows_.resize(rows + 1);
  starts_.resize(rows + 1);
  next_.resize(rows);
  for (int32_t i = 0; i < rows; ++i) {
    next_[i] = starts_[i];
    starts_[i + 1] += starts_[i];
  }
  places_.resize(positions.size());
  examples_.resize(positions.size());
  const size_t examples = offsets.size() - 1;
  for (size_t example = 0; example < examples; ++example) {
    for (int32_t place = offsets[example]; place < offsets[example + 1];
         ++place) {
      const int32_t at = next_[index_[positions[place]] - 1]++;
      places_[at] = place;
      examples_[at] = static_cast<int32_t>(example);
    }
  }
  for (size_t i = 1; i < counted_rows_.size(); ++i) {
    index_[counted_rows_[i]] = 0;
  }
}

}  // namespace parasol
