#include "coordinator/steps/told_batches.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace parasol {
namespace {

// Larger numbers of steps and batches are none.
constexpr int64_t kMaxBatches = int64_t{1} << 53;

bool IsNumber(int64_t value) { return value >= 0 && value <= kMaxBatches; }

}  // namespace

ToldBatches::ToldBatches(
    int64_t begin,
    const google::protobuf::RepeatedPtrField<wire::BatchRange>& ranges) {
  for (const wire::BatchRange& range : ranges) {
    if (!IsNumber(begin) || !IsNumber(range.count())) return;
    if (known_.size() == kMaxRanges) return;
    if (range.count() == 0) continue;
    if (IsNumber(range.first())) {
      known_.push_back(
          {.begin = begin,
           .run = {.first = range.first(), .count = range.count()}});
    }
    begin += range.count();
  }
}

ToldBatches::Run ToldBatches::From(int64_t step) const {
  const auto next = std::upper_bound(
      known_.begin(), known_.end(), step,
      [](int64_t wanted, const Known& known) { return wanted < known.begin; });
  if (next != known_.begin()) {
    const auto& [begin, run] = *std::prev(next);
    const int64_t skipped = step - begin;
    if (skipped < run.count) {
      return {.first = *run.first + skipped, .count = run.count - skipped};
    }
  }
  const int64_t end =
      next == known_.end() ? std::numeric_limits<int64_t>::max() : next->begin;
  return {.first = std::nullopt, .count = end - step};
}

}  // namespace parasol
