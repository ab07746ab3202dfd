#include "worker/store/table/row_cache.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "worker/store/table/row_numbers.h"

namespace parasol {

namespace {

int32_t SeatsOf(size_t capacity) {
  return static_cast<int32_t>(std::min(capacity, RowNumbers::kMaxRows));
}

}  // namespace

RowCache::RowCache(DeviceBlocks& blocks, size_t rows)
    : blocks_(blocks),
      seats_(SeatsOf(blocks.capacity()), static_cast<int32_t>(rows)),
      on_host_(blocks.floats(), blocks.shift()) {
  on_host_.Reserve(rows);
}

float* RowCache::Make(size_t number) {
  on_host_.Reserve(number + 1);
  return on_host_.row(number);
}

absl::Status RowCache::Take(absl::Span<const int32_t> numbers,
                            absl::Span<int32_t> seats, SeatSwap& swap) {
  changes_.clear();
  if (!seats_.Take(numbers, seats, changes_)) {
    return absl::ResourceExhaustedError(
        absl::StrCat(numbers.size(), " rows of a batch are more than the ",
                     seats_.size(), " for which it has room"));
  }
  for (const RowSeats::Change& change : changes_) {
    swap.Add({.seat = blocks_.row(change.seat),
              .in = on_host_.row(change.in),
              .out = change.out == RowSeats::kNone ? nullptr
                                                   : on_host_.row(change.out),
              .floats = blocks_.floats()});
  }
  return absl::OkStatus();
}

absl::Status RowCache::Resize(size_t seats) {
  RETURN_IF_ERROR(WriteBackFrom(seats));
  seats_.Resize(SeatsOf(seats));
  return absl::OkStatus();
}

absl::Status RowCache::WriteBackFrom(size_t seat) {
  const size_t floats = blocks_.floats();
  return blocks_.Fetch(
      seat, seats_.taken(), [&](size_t first, absl::Span<const float> rows) {
        for (size_t i = 0; i * floats < rows.size(); ++i) {
          const int32_t number = seats_.row_of(static_cast<int32_t>(first + i));
          std::copy_n(rows.data() + i * floats, floats, on_host_.row(number));
        }
        return absl::OkStatus();
      });
}

}  // namespace parasol
