#include "worker/store/table/row_seats.h"

#include <algorithm>
#include <numeric>

#include "base/log.h"

namespace parasol {

RowSeats::RowSeats(int32_t seats, int32_t rows)
    : seats_(seats), seat_of_(rows), taken_(rows) {
  CHECK_LE(rows, seats);
  std::iota(seat_of_.begin(), seat_of_.end(), 0);
  for (int32_t row = 0; row < rows; ++row) seats_[row].row = row;
}

bool RowSeats::Take(absl::Span<const int32_t> numbers,
                    absl::Span<int32_t> seats, std::vector<Change>& changes) {
  CHECK_EQ(numbers.size(), seats.size());
  if (numbers.size() > seats_.size()) return false;
  ++batch_;
  in_both_ = 0;
  int64_t found = 0;
  // All rows of the batch are marked before one is chosen to leave.
  for (size_t i = 0; i < numbers.size(); ++i) {
    seats[i] = seat_of(numbers[i]);
    if (seats[i] == kNone) continue;
    ++found;
    Use(seats[i]);
  }
  const auto count = static_cast<int64_t>(numbers.size());
  const int64_t spared = found + in_last_batch_ - in_both_;
  spares_last_batch_ = count - found <= size() - spared;
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (seats[i] != kNone) continue;
    const int32_t seat = Choose();
    const int32_t out = row_of(seat);
    changes.push_back({.seat = seat, .in = numbers[i], .out = out});
    if (out != kNone) seat_of_[out] = kNone;
    if (static_cast<size_t>(numbers[i]) >= seat_of_.size()) {
      seat_of_.resize(numbers[i] + 1, kNone);
    }
    seat_of_[numbers[i]] = seat;
    seats_[seat] = {.batch = batch_, .row = numbers[i]};
    seats[i] = seat;
  }
  in_last_batch_ = count;
  return true;
}

void RowSeats::Use(int32_t seat) {
  Seat& used = seats_[seat];
  if (used.batch == batch_ - 1) ++in_both_;
  used.batch = batch_;
  used.has_second_chance = true;
}

// Rows of the batch before are counted as before: if some have lost their
// seats, others of that batch may be the next to leave.
void RowSeats::Resize(int32_t seats) {
  for (int32_t seat = seats; seat < taken_; ++seat) {
    seat_of_[row_of(seat)] = kNone;
  }
  seats_.resize(seats);
  taken_ = std::min(taken_, seats);
  hand_ = 0;
}

// Two rounds of the hand take all second chances.
int32_t RowSeats::Choose() {
  if (taken_ < size()) return taken_++;
  while (true) {
    const size_t at = hand_;
    hand_ = at + 1 == seats_.size() ? 0 : at + 1;
    Seat& seat = seats_[at];
    if (seat.batch == batch_) continue;
    if (spares_last_batch_ && seat.batch == batch_ - 1) continue;
    if (!seat.has_second_chance) return static_cast<int32_t>(at);
    seat.has_second_chance = false;
  }
}

}  // namespace parasol
