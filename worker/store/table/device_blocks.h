#ifndef PARASOL_WORKER_STORE_TABLE_DEVICE_BLOCKS_H_
#define PARASOL_WORKER_STORE_TABLE_DEVICE_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cluster/rows/row_memory.h"
#include "ml/device/device.h"
#include "ml/kernel/pass_argument.h"

namespace parasol {

// Room for a table's rows in the memory of a device, in blocks of a power of
// two rows. Blocks stay where they are, and are allocated some at once: as many
// as there are, up to 32 MiB. Not thread-safe.
class DeviceBlocks {
 public:
  // The size of a block that holds more than one row is at most this, without
  // its rows' marks.
  static constexpr size_t kBlockBytes = 64 << 10;
  // Most bytes of blocks that are allocated at once.
  static constexpr size_t kGrowthBytes = 32 << 20;

  struct Options {
    size_t floats = 0;  // elements of a row, with its slots
    bool has_marks = false;
    size_t block_bytes = kBlockBytes;  // limit in place of a larger kBlockBytes
  };

  // Makes no block. Takes what blocks need from `memory`, which has the limit
  // of all tables. Borrows it and `device`.
  DeviceBlocks(const Options& options, RowMemory& memory, Device& device);
  ~DeviceBlocks();

  // Makes room for `rows` rows in all, or for as many of them as it can.
  //   ResourceExhausted  the device has no memory for all of them, or the limit
  //                      does not allow it.
  //   Unavailable        the device was lost.
  absl::Status Reserve(size_t rows);

  // Returns the number of rows for which there is room when memory of at least
  // `bytes` is given back, or all: memory is given back as it was allocated.
  size_t CapacityWithout(size_t bytes) const;
  // Gives the memory of all rows from number `capacity` on back, which is one
  // that CapacityWithout() has returned. No work uses it any more.
  void Truncate(size_t capacity);

  // Calls `visit` with each block that has some of the rows from `begin`, a
  // block's first one, to `end` - 1, as they are after all work so far: with
  // the number of the first of these rows, and the rows, copied to the host.
  // Ends with the first error of `visit`.
  //   Unavailable  the device was lost.
  absl::Status Fetch(
      size_t begin, size_t end,
      absl::FunctionRef<absl::Status(size_t first, absl::Span<const float>)>
          visit);

  // Address of a row in the device's memory.
  float* row(size_t number) const {
    return blocks_[number >> shift_] + (number % rows_per_block()) * floats();
  }
  // Returns where the rows are. Addresses stay the same, but for the list of
  // blocks, which may move in Reserve(); the old list stays, too.
  RowBlocks blocks() const;

  size_t floats() const { return options_.floats; }
  size_t rows_per_block() const { return size_t{1} << shift_; }
  int shift() const { return shift_; }
  // Number of rows for which there is room.
  size_t capacity() const { return blocks_.size() << shift_; }
  size_t allocated_bytes() const { return blocks_.size() * BytesPerBlock(); }

 private:
  // Elements of a block, with the marks of its rows.
  size_t ElementsPerBlock() const {
    return (floats() + options_.has_marks) << shift_;
  }
  size_t BytesPerBlock() const { return ElementsPerBlock() * sizeof(float); }
  absl::Status AddBlocks(size_t needed);
  absl::Status ReservePointers(size_t blocks);

  const Options options_;
  const int shift_;  // log2 of the number of a block's rows
  RowMemory& limit_;
  Device& device_;

  std::vector<Array<float>> memory_;  // several blocks in each
  std::vector<float*> blocks_;
  // The list where the device reads it, and the pinned one that is copied
  // there. Lists that have become too short stay, since a pass may read them.
  Array<float*> blocks_on_device_;
  Array<float*> blocks_to_copy_;
  std::vector<Array<float*>> outgrown_;
  // Number of blocks in whose place a copy has begun; not fewer after
  // Truncate().
  size_t copied_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_STORE_TABLE_DEVICE_BLOCKS_H_
