#ifndef PARASOL_WORKER_STORE_TABLE_ROW_SEATS_H_
#define PARASOL_WORKER_STORE_TABLE_ROW_SEATS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace parasol {

// The seats of a cached table, each of which has room for one row in a device's
// memory: which row has which seat, and whose seat is given to a row that has
// none. Rows are known by their numbers. Not thread-safe.
//
// A free seat is given first, then the seat of a row that was not used lately:
// a hand goes from seat to seat, around and around (the clock algorithm). A row
// that was used again since it came has a second chance: the hand passes it
// once. No row of the present batch loses its seat, and a row of the batch
// before, which the device may be working on, only if no other one is left.
class RowSeats {
 public:
  static constexpr int32_t kNone = -1;

  // A seat that is given to row `in`. `out` is the row that had it, or kNone.
  struct Change {
    int32_t seat;
    int32_t in;
    int32_t out;
  };

  // Makes seats 0 to `seats` - 1. Row n of the first `rows` rows, which are at
  // most as many, has seat n.
  RowSeats(int32_t seats, int32_t rows);

  // Begins a batch. Writes the seats of its rows `numbers`, which are distinct,
  // to `seats`, which is as long as `numbers`, and appends the seats that are
  // given to rows without one to `changes`. Returns false, and changes nothing,
  // if there are more rows than seats.
  bool Take(absl::Span<const int32_t> numbers, absl::Span<int32_t> seats,
            std::vector<Change>& changes);

  // Has seats 0 to `seats` - 1 from now on: more than before, of which the new
  // ones are free, or fewer. Rows that had the others have none.
  void Resize(int32_t seats);

  // Returns the row that has `seat`, or the seat that row `number` has; kNone
  // if there is none.
  int32_t row_of(int32_t seat) const { return seats_[seat].row; }
  int32_t seat_of(int32_t number) const {
    return static_cast<size_t>(number) < seat_of_.size() ? seat_of_[number]
                                                         : kNone;
  }

  int32_t size() const { return static_cast<int32_t>(seats_.size()); }
  // The number of seats that have been given to a row; they are the first ones.
  int32_t taken() const { return taken_; }

 private:
  struct Seat {
    int64_t batch = -1;  // the last one that has used the row
    int32_t row = kNone;
    bool has_second_chance = false;
  };

  // Marks the row that has `seat` as one of the present batch.
  void Use(int32_t seat);
  // Returns a seat that is free, or whose row is to leave it.
  int32_t Choose();

  std::vector<Seat> seats_;
  std::vector<int32_t> seat_of_;  // indexed by number; may be too short
  int32_t taken_;
  size_t hand_ = 0;
  int64_t batch_ = 0;
  // Numbers of rows of the batch before, and of those that are in the present
  // batch, too.
  int64_t in_last_batch_ = 0;
  int64_t in_both_ = 0;
  bool spares_last_batch_ = true;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_STORE_TABLE_ROW_SEATS_H_
