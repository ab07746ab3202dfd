#ifndef PARASOL_WORKER_STORE_TABLE_DEVICE_TABLES_H_
#define PARASOL_WORKER_STORE_TABLE_DEVICE_TABLES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/work_helpers.h"
#include "cluster/rows/row_memory.h"
#include "cluster/rows/row_sample.h"
#include "cluster/rows/row_table.h"
#include "ml/device/device.h"
#include "ml/model/device_rows.h"
#include "ml/model/device_training.h"
#include "ml/optimizer/device/table_update.h"
#include "ml/optimizer/optimizer.h"
#include "proto/job.pb.h"
#include "worker/store/table/cache_worth.h"
#include "worker/store/table/device_table.h"
#include "worker/store/table/seat_swap.h"
#include "worker/store/table/tables_elsewhere.h"

namespace parasol {

// A worker's sparse tables in the memory of the device that computes. Rows
// are looked up and updated where they are; a step sends their numbers alone.
// After the same gradients they hold the values of a RowTable, to the bit (see
// TableUpdate).
//
// A table whose rows don't fit in the device's memory any more, or exceed the
// job's limit, becomes a cached one: host memory has the rows, and the device
// those that were used last. Where that can't be, because the optimizer moves
// all rows or a batch's rows alone don't fit, the table goes to host memory;
// and where too few of the rows that batches read are on the device
// (CacheWorth). It stays that until Start(), and a line in the log says what it
// becomes. Large tables leave a reserve free, for what else may need memory
// later; when that is not enough, the caller has the largest table make room.
// Not thread-safe.
class DeviceTables : public DeviceRows, public TablesElsewhere {
 public:
  // Bytes of the reserve, which is made when the tables take as many.
  static constexpr size_t kReserveBytes = 256 << 20;

  struct Options {
    size_t reserve_bytes = kReserveBytes;
    // Bytes of the buffers through which rows of cached tables go.
    size_t swap_bytes = SeatSwap::kBufferBytes;
    // The rule by which a cached table goes to the host.
    CacheWorth::Options worth = {};
    // Number of threads that help to look up a batch's ids.
    size_t helpers = HelpersByCores();
  };

  // Rows of cached tables that batches have read, and how many were not on the
  // device.
  struct CacheUse {
    int64_t rows = 0;
    int64_t misses = 0;
  };

  // Returns the number of helpers for a process one of whose threads stages,
  // while others decode: half of the cores that are left, 3 at most.
  static size_t HelpersByCores();

  // Creates the job's tables, which are on the host until Start(). Borrows
  // `device`, where the job's composition has the variables.
  //   InvalidArgument    an optimizer can't be used.
  //   ResourceExhausted  the device is full.
  static absl::StatusOr<std::unique_ptr<DeviceTables>> Create(
      const job::Job& job, Device& device, const Options& options);
  static absl::StatusOr<std::unique_ptr<DeviceTables>> Create(
      const job::Job& job, Device& device) {
    return Create(job, device, Options());
  }

  // Frees the reserve, because something else has found the device full.
  // Returns false if there is none, or none any more.
  bool FreeReserve();

  // Has the table that takes most of the device's memory give some of it back,
  // as a cached table, or go to the host where that can't be, because something
  // else has found the device full, as `why` says. Waits for the work that is
  // enqueued. Batches that were staged must be staged again. Returns false if
  // no table takes memory any more. Returns errors of Visit() and of
  // RowTable::Insert().
  absl::StatusOr<bool> MakeRoom(const absl::Status& why);

  // Enqueues an update of each table that is on the device by the gradients of
  // the pass that is enqueued, clipped as the job says.
  //   ResourceExhausted  the device is full.
  //   Unavailable        the device was lost.
  absl::Status Update(absl::Span<const DeviceTraining::Rows> rows);

  // Returns what has been read since the last call.
  CacheUse TakeCacheUse() { return std::exchange(cache_use_, {}); }
  bool IsCached(size_t table) const {
    return Has(table) && tables_[table]->is_cached();
  }

  void Probe(absl::Span<const uint64_t> hashes, size_t first,
             absl::Span<const RowProbe> tables) const override;
  absl::Status Find(absl::Span<RowLookup> lookups) override;
  WorkHelpers& helpers() override { return helpers_; }

  absl::Status Start(std::vector<RowTable*> on_host) override;
  bool Has(size_t table) const override { return tables_[table] != nullptr; }
  absl::Status Pull(size_t table, absl::Span<const uint64_t> ids,
                    absl::Span<float> values) override;
  absl::Status Insert(size_t table, const RowBatch& batch) override;
  absl::Status Visit(size_t table, RowVisit visit) override;
  void AddTo(size_t table, RowSample& sample) const override;

 private:
  // Tables that one optimizer updates.
  struct Group {
    std::unique_ptr<const Optimizer> optimizer;
    // Null: the group's table is frozen.
    std::unique_ptr<TableUpdate> update;
  };

  DeviceTables(const job::Job& job, Device& device, const Options& options);
  absl::StatusOr<Group> MakeGroup(const job::Optimizer& spec);
  absl::Status Update(Group& group, size_t index,
                      absl::Span<const DeviceTraining::Rows> rows);
  absl::Status Find(RowLookup& lookup);
  // Looks which tables have the same rows under the same numbers.
  void CompareNumbers(absl::Span<const RowLookup> lookups);
  // Has a table that lacks memory, as `why` says, get some of others; or become
  // a cached one; or go to the host if it has no room for `rows` rows at once.
  absl::Status GiveWay(size_t table, size_t rows, const absl::Status& why);
  // Returns true if another table has given memory back: one that has more than
  // twice as much as `table`, or any one if a batch would fit then.
  absl::StatusOr<bool> TakeFromOthers(size_t table, size_t rows,
                                      const absl::Status& why);
  // Returns true if the table has become a cached one.
  absl::StatusOr<bool> TryCache(size_t table, size_t rows,
                                const absl::Status& why);
  // Returns true if the table has given memory back. Rows of a batch may have
  // other places then.
  absl::StatusOr<bool> Shrink(size_t table, const absl::Status& why);
  void LogCache(size_t table, const absl::Status& why) const;
  // Returns true if its optimizer allows a table to be cached.
  bool MayCache(size_t table) const;
  // Returns the tables that take some of the device's memory, the largest
  // first.
  std::vector<size_t> BySize() const;
  // Makes the reserve if the tables have become large enough and there is room.
  absl::Status KeepReserve();
  // Moves cached tables to the host that are not worth it.
  absl::Status LeaveCaches();
  // Tells CacheWorth what a batch has read.
  void CountUse(absl::Span<const RowLookup> lookups);
  // Copies the table's rows to the host and frees them on the device.
  absl::Status MoveToHost(size_t table);
  // Does that for want of memory, as `why` says.
  absl::Status GiveUp(size_t table, const absl::Status& why);

  const job::Job job_;
  Device& device_;
  const size_t reserve_bytes_;
  const CacheWorth::Options worth_options_;
  RowMemory memory_;  // the limit of what all tables take of the device's
  bool may_reserve_ = true;  // false once it was freed
  Array<std::byte> reserve_;
  std::vector<Group> groups_;
  std::vector<size_t> group_of_;                      // one per table
  std::vector<std::unique_ptr<DeviceTable>> tables_;  // null: on the host
  std::vector<RowTable*> on_host_;
  SeatSwap swap_;
  WorkHelpers helpers_;
  CacheUse cache_use_;
  std::vector<CacheWorth> worth_;  // one per table
  std::vector<int64_t> misses_;    // one per table, of the present Find()
  bool has_shrunk_ = false;  // true once a table has, in the present Find()
  // Tables of one update, with the same number of updates before it.
  std::vector<TableUpdate::Table> updated_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_STORE_TABLE_DEVICE_TABLES_H_
