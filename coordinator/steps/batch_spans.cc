#include "coordinator/steps/batch_spans.h"

#include <algorithm>
#include <iterator>

namespace parasol {

void BatchSpans::Add(int64_t first, int64_t count) {
  if (count <= 0) return;
  int64_t begin = first;
  int64_t end = first + count;
  auto it = ends_.upper_bound(begin);
  if (it != ends_.begin() && std::prev(it)->second >= begin) --it;
  // Takes in every span that touches the new one.
  while (it != ends_.end() && it->first <= end) {
    begin = std::min(begin, it->first);
    end = std::max(end, it->second);
    size_ -= it->second - it->first;
    it = ends_.erase(it);
  }
  ends_[begin] = end;
  size_ += end - begin;
}

bool BatchSpans::Remove(int64_t batch) {
  return RemoveTail(batch, batch + 1) > 0;
}

int64_t BatchSpans::RemoveSmallest(int64_t count) {
  int64_t removed = 0;
  while (removed < count && !ends_.empty()) {
    const auto [first, end] = *ends_.begin();
    const int64_t taken = std::min(end - first, count - removed);
    ends_.erase(ends_.begin());
    if (first + taken < end) ends_[first + taken] = end;
    removed += taken;
  }
  size_ -= removed;
  return removed;
}

int64_t BatchSpans::RemoveAll(int64_t begin, int64_t end) {
  int64_t removed = 0;
  while (begin < end) {
    // The last span that begins before `end`.
    auto it = ends_.lower_bound(end);
    if (it == ends_.begin()) break;
    const auto [first, behind] = *--it;
    if (behind <= begin) break;
    const int64_t last = std::min(end, behind);
    removed += RemoveTail(begin, last);
    end = first;
  }
  return removed;
}

int64_t BatchSpans::RemoveTail(int64_t begin, int64_t end) {
  auto it = ends_.lower_bound(end);
  if (it == ends_.begin()) return 0;
  const auto [first, behind] = *--it;
  if (behind < end) return 0;
  const int64_t from = std::max(first, begin);
  ends_.erase(it);
  if (first < from) ends_[first] = from;
  if (end < behind) ends_[end] = behind;
  size_ -= end - from;
  return end - from;
}

}  // namespace parasol
