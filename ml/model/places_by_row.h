#ifndef PARASOL_ML_MODEL_PLACES_BY_ROW_H_
#define PARASOL_ML_MODEL_PLACES_BY_ROW_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "ml/model/distinct_ids.h"

namespace parasol {

// The places at which an input looks rows up, row by row: the arrays of a
// RowPlaces, on the host. Example i has the places [offsets[i], offsets[i +
// 1]), and a row's places ascend. Its memory is used again.
class PlacesByRow {
 public:
  // Assigns the places of one batch: place p looks up row positions[p], below
  // `num_rows`. Rows come in the order in which they are first looked up.
  // Linear in the number of places.
  void Assign(absl::Span<const int32_t> offsets,
              absl::Span<const int32_t> positions, size_t num_rows);

  // Assigns the places of one batch in steps: Begin(), AssignGroup() for each
  // group of the distinct ids of this input alone, by several threads at once
  // perhaps, and End(). Rows come in ascending order.
  void Begin(absl::Span<const int32_t> offsets);
  void AssignGroup(DistinctIds::Range rows,
                   const DistinctIds::GroupPlaces& group);
  void End(size_t num_rows);

  // The number of rows, then each row's position.
  absl::Span<const int32_t> counted_rows() const {
    return absl::MakeConstSpan(counted_rows_).first(num_rows_ + 1);
  }
  absl::Span<const int32_t> starts() const {
    return absl::MakeConstSpan(starts_).first(num_rows_ + 1);
  }
  absl::Span<const int32_t> places() const {
    return absl::MakeConstSpan(places_).first(num_places_);
  }
  // The example of each of places().
  absl::Span<const int32_t> examples() const {
    return absl::MakeConstSpan(examples_).first(num_places_);
  }

 private:
  void Reserve(absl::Span<const int32_t> offsets);

  size_t num_rows_ = 0;
  size_t num_places_ = 0;
  // Arrays that may be longer than they are said to be.
  std::vector<int32_t> counted_rows_;
  size_t numbered_rows_ = 0;  // counted_rows_[1 + i] is i below it
  std::vector<int32_t> starts_;
  std::vector<int32_t> places_;
  std::vector<int32_t> examples_;
  std::vector<int32_t> example_of_;  // indexed by place
  // Memory of Assign(). The index of each row in counted_rows_, 0 if it has
  // none, between calls for all.
  std::vector<int32_t> index_;
  std::vector<int32_t> next_;  // place of each row that is written next
};

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_PLACES_BY_ROW_H_
