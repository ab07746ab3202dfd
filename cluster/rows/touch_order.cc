#include "cluster/rows/touch_order.h"

namespace parasol {

void TouchOrder::Append() {
  links_.emplace_back();
  LinkLast(static_cast<uint32_t>(links_.size() - 1));
}

void TouchOrder::Touch(uint32_t row) {
  if (row == newest_) return;
  Unlink(row);
  LinkLast(row);
}

void TouchOrder::Remove(uint32_t row) {
  Unlink(row);
  const auto last = static_cast<uint32_t>(links_.size() - 1);
  if (row != last) {
    links_[row] = links_[last];
    PointTo(row);
  }
  links_.pop_back();
}

void TouchOrder::Assign(absl::Span<const uint32_t> rows) {
  links_.assign(rows.size(), Link());
  oldest_ = newest_ = kNone;
  for (const uint32_t row : rows) LinkLast(row);
}

void TouchOrder::Unlink(uint32_t row) {
  const Link link = links_[row];
  (link.before == kNone ? oldest_ : links_[link.before].next) = link.next;
  (link.next == kNone ? newest_ : links_[link.next].before) = link.before;
}

void TouchOrder::LinkLast(uint32_t row) {
  links_[row] = {.before = newest_};
  (newest_ == kNone ? oldest_ : links_[newest_].next) = row;
  newest_ = row;
}

void TouchOrder::PointTo(uint32_t row) {
  const Link link = links_[row];
  (link.before == kNone ? oldest_ : links_[link.before].next) = row;
  (link.next == kNone ? newest_ : links_[link.next].before) = row;
}

}  // namespace parasol
