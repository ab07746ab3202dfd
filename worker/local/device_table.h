#ifndef PARASOL_WORKER_LOCAL_DEVICE_TABLE_H_
#define PARASOL_WORKER_LOCAL_DEVICE_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/row_hash.h"
#include "cluster/rows/row_arena.h"
#include "cluster/rows/row_index.h"
#include "ml/device/device.h"
#include "ml/initializer/row_initializer.h"
#include "ml/kernel/pass_argument.h"
#include "ml/optimizer/optimizer.h"
#include "proto/job.pb.h"
#include "storage/shard_entry.h"

namespace parasol {

// The rows of one sparse table in the memory of a device, with values and
// slots; their ids and the index are on the host. A row has the same first
// values as in a RowTable, and a number by the order in which rows are made.
//
// Rows are in blocks of about 64 KiB, which stay where they are. Blocks are
// allocated some at once: as many as there are, up to 32 MiB. Not thread-safe.
class DeviceTable {
 public:
  // The size of a block that holds more than one row is at most this, without
  // its rows' marks.
  static constexpr size_t kBlockBytes = 64 << 10;
  // Most bytes of blocks that are allocated at once.
  static constexpr size_t kGrowthBytes = 32 << 20;

  struct Options {
    std::string name;
    size_t width = 0;
    job::Initializer initializer = {};
    uint64_t seed = 0;
  };

  // Creates a table without rows. Borrows `optimizer` and `device`.
  //   InvalidArgument  the initializer is out of range.
  static absl::StatusOr<std::unique_ptr<DeviceTable>> Create(
      const Options& options, const Optimizer& optimizer, Device& device);

  // Writes the numbers of the rows of `ids`, which are distinct, to `numbers`,
  // and makes those that are missing. Their copy is on the copy-in stream.
  //   ResourceExhausted  the device or the host has no memory for them; the
  //                      table is as it was.
  //   Unavailable        the device was lost.
  absl::Status Find(absl::Span<const uint64_t> ids,
                    absl::Span<int32_t> numbers);

  // Adds rows as Visit() gives them, and advances to their updates. Errors are
  // those of Find() and
  //   InvalidArgument  the rows have another size.
  //   AlreadyExists    the table has one of the rows, or `batch` has it twice;
  //                    the message names it, and the table is as it was.
  absl::Status Insert(const RowBatch& batch);

  // Calls `visit` with every row once, in batches of about 16 KiB whose ids
  // ascend, as they are after all updates so far; a table without rows gives
  // one batch that carries its updates. Ends with the first error of `visit`.
  //   Unavailable  the device was lost.
  absl::Status Visit(RowVisit visit);

  // Copies the values of row `number` to `out`, as they are after all updates
  // so far.
  //   Unavailable  the device was lost.
  absl::Status Read(int32_t number, absl::Span<float> out);

  // Returns where the rows are. Addresses stay the same, but for the list of
  // blocks, which may move when rows are made; the old list stays, too.
  RowBlocks blocks() const;
  int64_t rows() const { return static_cast<int64_t>(ids_.size()); }
  // The rows' ids, by their numbers; valid until rows are made.
  absl::Span<const uint64_t> ids() const { return ids_; }

  // Bytes of the device's memory that its blocks take.
  size_t allocated_bytes() const {
    return blocks_.size() * BlockElements() * sizeof(float);
  }

  // The number of updates that the table has had.
  int64_t updates() const { return updates_; }
  void CountUpdate() { ++updates_; }

 private:
  DeviceTable(const Options& options, RowInitializer initializer,
              const Optimizer& optimizer, Device& device);

  RowIndex& IndexOf(uint64_t hash) { return *indexes_[StripeOf(hash)]; }
  size_t rows_per_block() const { return size_t{1} << shift_; }
  // Elements of a block, with the marks of its rows.
  size_t BlockElements() const;
  absl::Status CheckAreNew(absl::Span<const uint64_t> ids);
  // Makes room for `rows` rows in all.
  absl::Status Reserve(size_t rows);
  absl::Status AddBlocks(size_t needed);
  absl::Status ReservePointers(size_t blocks);
  // Returns host memory for `rows` rows that are to be copied to the device.
  absl::StatusOr<float*> Stage(size_t rows);
  // Gives the `count` rows that are staged to `ids`, and copies them.
  absl::Status Append(absl::Span<const uint64_t> ids);
  void Fill(uint64_t id, float* row) const;
  absl::Status VisitBlock(const float* rows, size_t first, size_t count,
                          RowVisit visit);

  const Options options_;
  const RowInitializer initializer_;
  const Optimizer& optimizer_;
  Device& device_;
  const size_t floats_;  // elements of a row, with its slots
  const bool has_marks_;
  const int shift_;  // log2 of the number of a block's rows

  RowArena arena_;                                  // the indexes' memory
  std::vector<std::unique_ptr<RowIndex>> indexes_;  // one for each stripe
  std::vector<uint64_t> ids_;                       // indexed by number
  int64_t updates_ = 0;

  std::vector<Array<float>> memory_;  // several blocks in each
  std::vector<float*> blocks_;
  // The same list where the device reads it, and the pinned one that is copied
  // there. Lists that have become too short stay, since a pass may read them.
  Array<float*> blocks_on_device_;
  Array<float*> blocks_to_copy_;
  std::vector<Array<float*>> outgrown_;

  // Rows on their way to the device, and the end of their copy.
  Array<float> staged_;
  std::unique_ptr<Device::Event> copied_;
  std::vector<size_t> missing_;  // positions in the ids of one Find()
  std::vector<uint64_t> missing_ids_;
  Array<float> fetched_;  // rows on their way from the device
};

}  // namespace parasol

#endif  // PARASOL_WORKER_LOCAL_DEVICE_TABLE_H_
