#ifndef PARASOL_WORKER_STORE_TABLE_SEAT_SWAP_H_
#define PARASOL_WORKER_STORE_TABLE_SEAT_SWAP_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ml/device/device.h"

namespace parasol {

// The way of cached tables' rows from the host to seats in the device's memory,
// and of those that had the seats before back to the host. Rows of all tables
// go together: one copy in, one kernel that swaps them with the seats' rows
// in place, and one copy out. Nothing waits for it, unless there are more rows
// than its buffer has room for: then they go in rounds, each of which waits for
// the one before. Not thread-safe.
class SeatSwap {
 public:
  // Bytes of the buffer, of which there is one on the device and one in pinned
  // host memory.
  static constexpr size_t kBufferBytes = 16 << 20;

  struct Move {
    float* seat = nullptr;      // address in the device's memory
    const float* in = nullptr;  // the row that the seat is given
    // Address to which the row that has the seat now goes; null: none.
    float* out = nullptr;
    size_t floats = 0;
  };

  // Borrows `device`.
  explicit SeatSwap(Device& device, size_t buffer_bytes = kBufferBytes)
      : device_(device), buffer_bytes_(buffer_bytes) {}

  // Makes buffers for rows of up to `floats` elements: smaller ones if the
  // device has no room for the usual ones.
  //   ResourceExhausted  the device is full.
  //   Unavailable        the device was lost.
  absl::Status Reserve(size_t floats);

  // Adds a move to those that Send() makes. Seats and rows are distinct. Their
  // memory stays until Finish() behind it; buffers are reserved for the row.
  void Add(const Move& move) { added_.push_back(move); }
  // The number of moves that were added and not sent.
  size_t added() const { return added_.size(); }

  // Enqueues the moves that were added: the rows are in their seats for all
  // that is enqueued on the compute stream afterwards, and leave them when all
  // that was enqueued there before is done.
  //   Unavailable  the device was lost.
  absl::Status Send();

  // Blocks until the rows that have left are where they were to be written: no
  // caller looks at them before.
  //   Unavailable  the device was lost.
  absl::Status Finish();

 private:
  // Returns how many of the first `moves` have room in the buffer.
  size_t CountFitting(absl::Span<const Move> moves) const;
  // Enqueues one round.
  absl::Status SendRound(absl::Span<const Move> moves);
  // Writes the list of rows, and then the rows, to the buffer. Returns the
  // number of the rows' elements.
  size_t Fill(absl::Span<const Move> moves);

  Device& device_;
  const size_t buffer_bytes_;
  Array<float> host_, on_device_;
  std::unique_ptr<Device::Event> returned_;
  std::vector<Move> added_;
  // The moves of the round that was enqueued last, until they are finished.
  std::vector<Move> sent_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_STORE_TABLE_SEAT_SWAP_H_
