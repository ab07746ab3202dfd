#ifndef PARASOL_WORKER_STORE_TABLE_ROW_CACHE_H_
#define PARASOL_WORKER_STORE_TABLE_ROW_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "worker/store/table/device_blocks.h"
#include "worker/store/table/host_rows.h"
#include "worker/store/table/row_seats.h"
#include "worker/store/table/seat_swap.h"

namespace parasol {

// The rows of a table that are more than its device has room for. All have room
// in host memory; the seats on the device have those that were used lately, and
// what the host has of these is old. A row that leaves its seat is written
// back. Not thread-safe.
class RowCache {
 public:
  // Each row for which `blocks` has room is a seat from now on; row n of the
  // first `rows`, which is there already, has seat n. Borrows `blocks`.
  RowCache(DeviceBlocks& blocks, size_t rows);

  // Makes room for row `number`, which has no seat, and returns its address on
  // the host, where the caller writes it.
  float* Make(size_t number);

  // Has the rows `numbers` of a batch, which are distinct, take seats, and
  // writes their seats' numbers in the blocks to `seats`. Adds to `swap`
  // what has to move: rows have their seats when it was sent.
  //   ResourceExhausted  there are more rows than seats; nothing has changed.
  absl::Status Take(absl::Span<const int32_t> numbers,
                    absl::Span<int32_t> seats, SeatSwap& swap);

  // Writes the rows that have seats back, as they are after all work so far:
  // then the host has all rows as they are.
  //   Unavailable  the device was lost.
  absl::Status WriteBack() { return WriteBackFrom(0); }

  // Has as many seats from now on as there will be room for rows: more when the
  // blocks have grown, or fewer before they are truncated. The rows that lose
  // their seats are written back.
  //   Unavailable  the device was lost.
  absl::Status Resize(size_t seats);

  // Gives back the host's memory of the block that row `number` is the first
  // of, whose rows may not be looked at any more.
  void Forget(size_t number) { on_host_.Forget(number); }

  // Address of a row on the host.
  const float* on_host(size_t number) const { return on_host_.row(number); }
  // The seat of a row; RowSeats::kNone: only the host has it.
  int32_t seat_of(int32_t number) const { return seats_.seat_of(number); }
  size_t seats() const { return seats_.size(); }

 private:
  absl::Status WriteBackFrom(size_t seat);

  DeviceBlocks& blocks_;
  RowSeats seats_;
  HostRows on_host_;
  std::vector<RowSeats::Change> changes_;  // memory of Take()
};

}  // namespace parasol

#endif  // PARASOL_WORKER_STORE_TABLE_ROW_CACHE_H_
