#include "ml/model/places_by_row.h"

#include <algorithm>

#include "ml/model/memory/grow.h"

namespace parasol {

// Makes room for as many rows as places, to be written without growing.
void PlacesByRow::Reserve(absl::Span<const int32_t> offsets) {
  num_places_ = offsets.back();
  GrowTo(counted_rows_, num_places_ + 1);
  GrowTo(starts_, num_places_ + 1);
  GrowTo(places_, num_places_);
  GrowTo(examples_, num_places_);
}

// A counting sort by the rows that there are.
void PlacesByRow::Assign(absl::Span<const int32_t> offsets,
                         absl::Span<const int32_t> positions, size_t num_rows) {
  Reserve(offsets);
  GrowTo(next_, num_places_);
  GrowTo(index_, num_rows);
  numbered_rows_ = 0;
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
  for (int32_t i = 0; i < rows; ++i) {
    next_[i] = starts_[i];
    starts_[i + 1] += starts_[i];
  }
  const size_t examples = offsets.size() - 1;
  for (size_t example = 0; example < examples; ++example) {
    for (int32_t place = offsets[example]; place < offsets[example + 1];
         ++place) {
      const int32_t at = next_[index_[positions[place]] - 1]++;
      places_[at] = place;
      examples_[at] = static_cast<int32_t>(example);
    }
  }
  for (int32_t i = 1; i <= rows; ++i) index_[counted_rows_[i]] = 0;
  counted_rows_[0] = rows;
  num_rows_ = rows;
}

void PlacesByRow::Begin(absl::Span<const int32_t> offsets) {
  Reserve(offsets);
  GrowTo(example_of_, num_places_);
  for (size_t example = 0; example + 1 < offsets.size(); ++example) {
    std::fill(example_of_.begin() + offsets[example],
              example_of_.begin() + offsets[example + 1],
              static_cast<int32_t>(example));
  }
  // Stay from batch to batch.
  for (; numbered_rows_ < num_places_; ++numbered_rows_) {
    counted_rows_[1 + numbered_rows_] = static_cast<int32_t>(numbered_rows_);
  }
  starts_[0] = 0;
}

// Sorts a group as Assign() sorts all; its places and rows stay in the
// processor's first cache. A row's end is where it began, moved on by each of
// its places.
void PlacesByRow::AssignGroup(DistinctIds::Range rows,
                              const DistinctIds::GroupPlaces& group) {
  int32_t* const ends = starts_.data() + 1 + rows.first;
  int32_t begin = group.first;
  for (int32_t row = 0; row < rows.size; ++row) {
    ends[row] = begin;
    begin += group.counts[row];
  }
  for (const DistinctIds::Place& place : group.places) {
    const int32_t at = ends[place.row]++;
    places_[at] = place.place;
    examples_[at] = example_of_[place.place];
  }
}

void PlacesByRow::End(size_t num_rows) {
  num_rows_ = num_rows;
  counted_rows_[0] = static_cast<int32_t>(num_rows);
}

}  // namespace parasol
