#ifndef PARASOL_CLUSTER_ROWS_ROW_TABLE_H_
#define PARASOL_CLUSTER_ROWS_ROW_TABLE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/work_helpers.h"
#include "cluster/rows/row_arena.h"
#include "cluster/rows/row_bounds.h"
#include "cluster/rows/row_marks.h"
#include "cluster/rows/row_memory.h"
#include "cluster/rows/row_sample.h"
#include "cluster/rows/row_snapshot.h"
#include "cluster/rows/row_stripe.h"
#include "cluster/rows/row_tier.h"
#include "cluster/rows/striped_ids.h"
#include "ml/optimizer/optimizer.h"
#include "proto/checkpoint.pb.h"
#include "proto/job.pb.h"

namespace parasol {

// One shard's rows of a sparse table. The id may be any 64-bit number; each row
// has values and slots. A row is made when it is first touched, by a pull or a
// push; its values then depend on (seed, name, id) only. In a table with bounds
// a push makes it, when its id has occurred often enough, and a pull of an id
// without a row gives the values that it would begin with and changes nothing;
// rows may go again (RowBounds). The table's time is the number of its updates.
//
// Thread-safe: requests run in parallel, stripe by stripe of the ids' hashes. A
// pull sees each row whole; two rows may be one push apart. Memory per row: its
// values and slots (RowLayout), 8 bytes of id and 17 to 52 bytes of index; 16
// more if rows may go. Of an id without a row that is counted, 9 to 22 bytes
// (IdCounts). With a tier (RowTierOptions) rows that were not used lately lie
// on the disk, and take 14 to 27 bytes of memory (DiskPlaces); what the table
// gives is the same.
//
// Values may be kept in bfloat16 (Options::values). Initial and inserted values
// are rounded to nearest, what an update makes of them at random, by bits that
// depend on (seed, name, id, number of the update) only: the same pushes in the
// same order give the same values.
//
// Every push goes through the whole table if the optimizer's other_rows() are
// touched (Adam, RMSprop without momentum, Nadam).
class RowTable {
 public:
  struct Options {
    std::string name;
    size_t width = 0;  // values of a row, 1 to 65,536
    job::Initializer initializer = {};
    uint64_t seed = 0;
    // Null: no limit. Concurrent requests may each exceed the limit by the rows
    // that they make.
    std::shared_ptr<RowMemory> memory = nullptr;
    // Threads that take stripes of large pushes; null: the caller alone.
    std::shared_ptr<WorkHelpers> helpers = nullptr;
    RowBounds bounds = {};
    RowTierOptions tier = {};
    // Form of values in memory and in the tier; all others see float32.
    job::SparseTable::Values values = job::SparseTable::FLOAT32;
  };

  //   InvalidArgument  the width or the initializer is out of range, the shard
  //                    may have fewer rows than kRowStripes, or this program
  //                    lacks the code of a custom optimizer; with a tier also
  //                    if its memory is too small, or more than the memory
  //                    limit, or a push goes through the whole table.
  static absl::StatusOr<std::unique_ptr<RowTable>> Create(
      Options options, std::unique_ptr<const Optimizer> optimizer);
  ~RowTable();

  // Writes the values of the rows of `ids`, in order, to `out`: count x width.
  // `ids`: count uint64 in the machine's byte order, at any alignment. Rows are
  // there as they are after `updates` updates; by default, after those that the
  // table has had.
  //   InvalidArgument    `count` is 2^32 or more.
  //   ResourceExhausted  missing rows of a table without bounds don't fit in
  //                      the memory limit, or the tier's disk is full or
  //                      refuses; the table is unchanged.
  //   Unavailable        a row on the disk is lost: the table is of no use any
  //                      more.
  absl::Status Pull(const std::byte* ids, size_t count, float* out,
                    std::optional<int64_t> updates = std::nullopt);

  // Makes one update of the table. `gradients`: count x width float32 at any
  // alignment. Gradients of the same id are summed first, in their order.
  // `counts`: how often each id occurs, count uint32 at any alignment; null: as
  // often as it is listed. Unless `out` is null, writes the new values there as
  // Pull() would right after, but each row is looked up once. Fails as Pull()
  // does, and with
  //   ResourceExhausted  missing rows don't fit in the memory limit; the table
  //                      is unchanged.
  absl::Status Push(const std::byte* ids, const std::byte* gradients,
                    size_t count, float* out = nullptr,
                    const std::byte* counts = nullptr)
      ABSL_LOCKS_EXCLUDED(snapshot_mu_);

  // Adds rows as a snapshot gave them, and advances to their updates. For a
  // table that no other thread uses yet; after an error the table is of no use.
  //   InvalidArgument    the rows have another size.
  //   AlreadyExists      the table has one of the rows; the message names it.
  //   ResourceExhausted  the rows exceed the memory limit.
  absl::Status Insert(const RowBatch& batch);
  // Adds counts of ids without a row as a snapshot gave them, behind the rows.
  // Does nothing in a table that does not count.
  void InsertCounts(const CountBatch& batch);
  // Ends the insertions: rows above the bounds go. The first push does so
  // otherwise, and takes longer.
  void EndInsertions();

  // Goes on with the initializer, the seed, the optimizer and the bounds of
  // `other`. Later pushes and rows go by them; each push goes by one or the
  // other.
  //   InvalidArgument  `other` has another width, other slots, values of
  //   another
  //                    form or bounds of another form; nothing has changed.
  absl::Status TakeRulesOf(const RowTable& other)
      ABSL_LOCKS_EXCLUDED(snapshot_mu_);

  // Waits for the pushes that are being applied, and holds up others while it
  // refers to all blocks: 30 ns for each 16 KiB of rows.
  RowSnapshot TakeSnapshot() const ABSL_LOCKS_EXCLUDED(snapshot_mu_);

  // Does the same for a snapshot to which later ones may be compared: from then
  // on the table marks which rows change, a bit for each. The snapshot has the
  // rows that were made or changed since snapshot `turn.since`, if that is the
  // newest one or the one to which that was compared, and otherwise all.
  RowSnapshot TakeSnapshot(const SnapshotTurn& turn)
      ABSL_LOCKS_EXCLUDED(snapshot_mu_);
  // Returns true if the table knows what has changed since snapshot `number`:
  // it is the newest one, or the one to which that was compared, and not too
  // many rows have gone since (RowMarks). With `frees_expired` those that take
  // memory still count as well: it frees them, as a snapshot does, and holds up
  // pushes meanwhile. A snapshot right behind it is complete then.
  bool Marks(uint64_t number, bool frees_expired = false)
      ABSL_LOCKS_EXCLUDED(snapshot_mu_);

  // Tells `sample` the rows that it may take. Looks at one stripe after the
  // other until no later one has such rows: of a large table at one in 128.
  void AddTo(RowSample& sample) const;

  // Counts `updates` updates as if they had been applied, unless the table has
  // had more.
  void AdvanceTo(int64_t updates);
  // Counts no more than `updates` updates: tables that were trained one push
  // after the other have had more than those that are trained in step count.
  // What was touched last by a later one counts as touched by the last. Before
  // anything is pushed.
  void CountAtMost(int64_t updates);
  int64_t updates() const { return updates_.load(std::memory_order_relaxed); }

  const std::string& name() const { return options_.name; }
  size_t width() const { return options_.width; }
  // Returns what a manifest says of the table (RowForm()).
  const durable::CheckpointTable& form() const { return form_; }
  size_t rows() const;
  // Returns what it has and has done; several numbers are not of one moment.
  const RowTotals& totals() const { return *totals_; }
  // Bytes of rows, indexes and counts, with those that snapshots hold and those
  // that are kept for reuse; in a table with a tier of places, too, and of
  // segments that are not written.
  size_t memory_bytes() const;

 private:
  struct TierFetch;

  RowTable(Options options, RowRules rules);
  std::shared_ptr<const RowRules> rules() const
      ABSL_LOCKS_EXCLUDED(snapshot_mu_);
  // Sorts `ids` by stripe. Fails as Pull() does.
  absl::Status Sort(const std::byte* ids, size_t count,
                    StripedIds& sorted) const;
  // `makes_room`: full stripes have other rows go for those that are missing.
  //   ResourceExhausted  rows of `sorted` that are missing don't fit.
  absl::Status CheckRoom(const StripedIds& sorted, bool makes_room) const
      ABSL_LOCKS_EXCLUDED(snapshot_mu_);
  // Returns the most rows that may be made with `free` bytes.
  size_t RoomFor(size_t free) const;
  size_t rows_in_memory() const;
  // Reads the rows of `sorted` that are on the disk, if the table has a tier,
  // once that takes rows. Fails as Pull() does.
  absl::Status Fetch(const StripedIds& sorted, TierFetch& fetch) const;
  RowSnapshot SnapshotOf(RowStripe::Contents contents,
                         uint32_t changed_since) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(snapshot_mu_);
  // Calls visit(stripe) for every stripe, on the caller's thread, and on
  // helpers too if a push of `count` rows is worth it.
  void ForEachStripe(size_t count, absl::FunctionRef<void(size_t)> visit) const;
  // Returns the stripe at which a request begins. Different requests begin at
  // different ones, so that two requests don't follow each other from stripe to
  // stripe.
  size_t FirstStripe() const;

  const Options options_;
  const RowLayout layout_;
  const durable::CheckpointTable form_;
  const std::shared_ptr<RowArena> arena_;
  const std::shared_ptr<RowTotals> totals_;
  const std::shared_ptr<RowTier> tier_;  // null: all rows are in memory
  std::vector<std::unique_ptr<RowStripe>> stripes_;
  std::atomic<int64_t> updates_ = 0;
  mutable std::atomic<size_t> requests_ = 0;

  // Held shared while a push is being applied, exclusively while there must be
  // none. Taken before a stripe's lock.
  mutable absl::Mutex snapshot_mu_;
  std::shared_ptr<const RowRules> rules_ ABSL_GUARDED_BY(snapshot_mu_);
  // Numbers of the snapshots of RowMarks; 0: nothing is marked.
  uint64_t newest_snapshot_ ABSL_GUARDED_BY(snapshot_mu_) = 0;
  uint64_t older_snapshot_ ABSL_GUARDED_BY(snapshot_mu_) = 0;
  RowStripe::Turns turns_ ABSL_GUARDED_BY(snapshot_mu_);
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_ROWS_ROW_TABLE_H_
