#ifndef PARASOL_CLUSTER_ROWS_TOUCH_ORDER_H_
#define PARASOL_CLUSTER_ROWS_TOUCH_ORDER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace parasol {

// The rows of a stripe, by their numbers, in the order in which they were
// touched last: a list, 8 bytes for each row. Not thread-safe.
class TouchOrder {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  // Adds row number size(), as the one touched last.
  void Append();
  // Makes `row` the one touched last.
  void Touch(uint32_t row);
  // Takes `row` out; the row with the largest number then has its number.
  void Remove(uint32_t row);
  // Takes the rows in this order, the first one touched first.
  void Assign(absl::Span<const uint32_t> rows);

  // The row that was touched first; kNone if there are no rows.
  uint32_t oldest() const { return oldest_; }
  // The row that was touched next after `row`; kNone if there is none.
  uint32_t next(uint32_t row) const { return links_[row].next; }
  size_t size() const { return links_.size(); }

 private:
  struct Link {
    uint32_t before = kNone;
    uint32_t next = kNone;
  };

  void Unlink(uint32_t row);
  void LinkLast(uint32_t row);
  // Makes the neighbours of `row`, or the ends, point to it.
  void PointTo(uint32_t row);

  std::vector<Link> links_;
  uint32_t oldest_ = kNone;
  uint32_t newest_ = kNone;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_ROWS_TOUCH_ORDER_H_
