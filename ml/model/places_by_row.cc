#include "ml/model/places_by_row.h"

#include <algorithm>

namespace parasol {

// A counting sort by the rows that there are.
void PlacesByRow::Assign(absl::Span<const int32_t> offsets,
                         absl::Span<const int32_t> positions, size_t num_rows) {
  if (index_.size() < num_rows) {
    index_.resize(std::max(num_rows, 3 * index_.size() / 2));
  }
  counted_rows_.assign(1, 0);
  starts_.assign(1, 0);
  for (const int32_t position : positions) {
    int32_t& index = index_[position];
    if (index == 0) {
      index = static_cast<int32_t>(counted_rows_.size());
      counted_rows_.push_back(position);
      starts_.push_back(0);
    }
    ++starts_[index];
  }
  counted_rows_[0] = static_cast<int32_t>(counted_rows_.size()) - 1;
  next_.clear();
  for (size_t i = 1; i < starts_.size(); ++i) {
    next_.push_back(starts_[i - 1]);
    starts_[i] += starts_[i - 1];
  }
  const size_t examples = offsets.size() - 1;
  places_.resize(positions.size());
  examples_.resize(positions.size());
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
