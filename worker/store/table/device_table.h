#ifndef PARASOL_WORKER_STORE_TABLE_DEVICE_TABLE_H_
#define PARASOL_WORKER_STORE_TABLE_DEVICE_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cluster/rows/row_memory.h"
#include "ml/device/device.h"
#include "ml/initializer/row_initializer.h"
#include "ml/kernel/pass_argument.h"
#include "ml/optimizer/optimizer.h"
#include "proto/job.pb.h"
#include "storage/shard_entry.h"
#include "worker/store/table/device_blocks.h"
#include "worker/store/table/row_cache.h"
#include "worker/store/table/row_numbers.h"
#include "worker/store/table/seat_swap.h"

namespace parasol {

// The rows of one sparse table in the memory of a device, with values and
// slots; their ids and the index are on the host. A row has the same first
// values as in a RowTable, and a number by the order in which rows are made.
//
// A row lies at its number in the device's blocks. When there is no room for
// more, the table may become a cached one (RowCache): then host memory has the
// rows by their numbers, and the blocks have those that were used last. Not
// thread-safe.
class DeviceTable {
 public:
  struct Options {
    std::string name;
    size_t width = 0;
    job::Initializer initializer = {};
    uint64_t seed = 0;
    size_t block_bytes = DeviceBlocks::kBlockBytes;
  };

  // Creates a table without rows, whose blocks take what they need from
  // `memory`. Borrows the arguments but for `options`.
  //   InvalidArgument  the initializer is out of range.
  static absl::StatusOr<std::unique_ptr<DeviceTable>> Create(
      const Options& options, const Optimizer& optimizer, RowMemory& memory,
      Device& device);

  // Finds the rows of distinct ids with the hashes `hashes`, and makes those
  // that are missing. `probed` is what numbers().Probe() has written for them,
  // perhaps before others were made, or an earlier call that has failed.
  // Returns the rows' places in blocks(), in `probed` or in memory that stays
  // until the next call. New rows' copy is on the copy-in stream. Rows of a
  // cached table that have to move are added to `swap`, and have their places
  // when it was sent.
  //   ResourceExhausted  the device or the host has no memory for them; the
  //                      table is as it was, but a cached one has the new rows.
  //   Unavailable        the device was lost.
  absl::StatusOr<absl::Span<const int32_t>> Find(
      absl::Span<const uint64_t> hashes, absl::Span<int32_t> probed,
      SeatSwap& swap);

  // Adds rows as Visit() gives them, and advances to their updates. Returns
  // errors of Find() and
  //   InvalidArgument  the rows have another size.
  //   AlreadyExists    the table has one of the rows, or `batch` has it twice;
  //                    the message names it, and the table is as it was.
  absl::Status Insert(const RowBatch& batch);

  // Calls `visit` with every row once, in batches of about 16 KiB whose ids
  // ascend, as they are after all updates so far; a table without rows gives
  // one batch that carries its updates. Ends with the first error of `visit`.
  // Requires that the swaps of a cached table are finished.
  //   Unavailable  the device was lost.
  absl::Status Visit(RowVisit visit);

  // Does the same and forgets the rows that have been visited, so that `visit`
  // may write them elsewhere on the host: there is no room for them twice,
  // perhaps. Only the destructor may be called then.
  absl::Status Drain(RowVisit visit);

  // Copies the values of the row of `id` to `out`, as they are after all
  // updates so far. Makes the row if it is missing; moves none. Requires what
  // Visit() requires. Returns errors of Find().
  absl::Status Read(uint64_t id, absl::Span<float> out);

  // Becomes a cached table, which has at least one row's room on the device.
  // Requires that the optimizer leaves rows without gradients alone.
  void UseCache();
  // Gives memory of at least `bytes` back to the device, and is a cached table
  // then. Returns false, and changes nothing, if that would leave no room for
  // as many rows as one call of Find() has asked for. Requires what Visit() and
  // UseCache() require.
  //   Unavailable  the device was lost.
  absl::StatusOr<bool> GiveBack(size_t bytes);
  bool is_cached() const { return cache_ != nullptr; }

  // Returns where the rows are. Addresses stay the same, but for the list of
  // blocks, which may move when rows are made; the old list stays, too.
  RowBlocks blocks() const { return blocks_.blocks(); }
  // Number of rows for which there is room on the device.
  size_t capacity() const { return blocks_.capacity(); }
  size_t floats() const { return blocks_.floats(); }
  int64_t rows() const { return static_cast<int64_t>(numbers_.size()); }
  // The numbers of the rows.
  const RowNumbers& numbers() const { return numbers_; }
  // Compares them with another table's (RowNumbers::Compare()).
  void CompareNumbers(const DeviceTable& other) {
    numbers_.Compare(other.numbers_);
  }

  // Bytes of the device's memory that its blocks take.
  size_t allocated_bytes() const { return blocks_.allocated_bytes(); }

  // The number of updates that the table has had.
  int64_t updates() const { return updates_; }
  void CountUpdate() { ++updates_; }

 private:
  DeviceTable(const Options& options, RowInitializer initializer,
              const Optimizer& optimizer, RowMemory& memory, Device& device);

  // Writes the numbers of rows that are missing in `probed`, and makes those
  // that are not there. Takes the arguments of Find() and returns its errors.
  absl::Status Number(absl::Span<const uint64_t> hashes,
                      absl::Span<int32_t> probed);
  // Makes rows whose elements `fill` writes, called with the position of each
  // one in `ids`, in order: they have the numbers behind those that there are,
  // which the caller adds. Returns errors of Find().
  absl::Status MakeRows(absl::Span<const uint64_t> ids,
                        absl::FunctionRef<void(size_t, float*)> fill);
  // Returns host memory for `rows` rows that are to be copied to the device.
  absl::StatusOr<float*> Stage(size_t rows);
  // Copies the `count` rows that are staged to the places behind all rows.
  absl::Status CopyStaged(size_t count);
  // Grows to `seats` seats, or as far as it can. Returns errors of Find().
  absl::Status AddSeats(size_t seats);
  void Fill(uint64_t id, float* row) const;
  absl::Status VisitRows(RowVisit visit, bool forgets);
  absl::Status VisitBlock(const float* rows, size_t first, size_t count,
                          RowVisit visit);
  absl::Status ReadFromDevice(int32_t place, absl::Span<float> out);

  const Options options_;
  const RowInitializer initializer_;
  const Optimizer& optimizer_;
  Device& device_;
  RowNumbers numbers_;
  DeviceBlocks blocks_;
  std::unique_ptr<RowCache> cache_;  // null: all rows are in the blocks
  int64_t updates_ = 0;
  size_t most_at_once_ = 0;  // number of ids of one Find()

  // Rows on their way to the device, and the end of their copy.
  Array<float> staged_;
  std::unique_ptr<Device::Event> copied_;
  std::vector<int32_t> places_;  // places of a cached table's rows
  Array<float> fetched_;         // a row on its way from the device
};

}  // namespace parasol

#endif  // PARASOL_WORKER_STORE_TABLE_DEVICE_TABLE_H_
