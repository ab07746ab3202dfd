#ifndef PARASOL_CLUSTER_ROWS_ROW_STRIPE_H_
#define PARASOL_CLUSTER_ROWS_ROW_STRIPE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "cluster/rows/disk_places.h"
#include "cluster/rows/id_counts.h"
#include "cluster/rows/row_arena.h"
#include "cluster/rows/row_block.h"
#include "cluster/rows/row_bounds.h"
#include "cluster/rows/row_index.h"
#include "cluster/rows/row_marks.h"
#include "cluster/rows/row_memory.h"
#include "cluster/rows/row_sample.h"
#include "cluster/rows/row_tier.h"
#include "cluster/rows/striped_ids.h"
#include "cluster/rows/touch_order.h"
#include "ml/initializer/row_initializer.h"
#include "ml/optimizer/optimizer.h"
#include "storage/tier/log_record.h"
#include "storage/tier/row_log.h"

namespace parasol {

// The layout, initializer, optimizer, bounds, memory limit and tier that all
// rows of a table share, and the key of the random bits by which bfloat16
// values are rounded (WidenedRows). A table may be given others of the same
// layout, memory and tier, and bounds of the same form.
struct RowRules {
  RowLayout layout;
  RowInitializer initializer;
  std::shared_ptr<const Optimizer> optimizer;
  std::shared_ptr<RowMemory> memory;
  RowBounds bounds = {};
  std::shared_ptr<RowTotals> totals = nullptr;
  // Null: all rows are in memory.
  std::shared_ptr<RowTier> tier = nullptr;
  uint64_t rounding_key = 0;

  // Bytes per id that an index takes, on average: 17 to 52. The indexes of a
  // table don't grow together.
  static constexpr size_t kIndexBytes = 35;
  // Bytes per row of a TouchOrder.
  static constexpr size_t kOrderBytes = 8;
  // Bytes that a count takes at most (IdCounts).
  static constexpr size_t kCountBytes = 22;
  // Bytes per row that are counted against the memory limit.
  static size_t BytesPerRow(const RowLayout& layout) {
    return layout.bytes_per_row() + kIndexBytes +
           (layout.timed ? kOrderBytes : 0);
  }
  // Bytes of memory that a row on the disk takes at most (DiskPlaces).
  static size_t BytesOnDisk(const RowLayout& layout) {
    return layout.timed ? 27 : 16;
  }
};

// The rows whose hashes begin with the same bits: the unit of locking. Rows are
// numbered in the order in which they were made; where one goes, the last one
// takes its number. They stay in place as long as no row goes and no snapshot
// shares their block. Thread-safe.
//
// Pushes and pulls say which update they belong to: rows go by it. Rows that
// have gone take memory until pushes come: each frees up to kExpiredAtOnce of
// each stripe.
//
// A row of a table with a tier is either in memory, with a number, or on the
// disk, at a place. A push or a pull brings all its rows into memory before it
// begins, and sends others out at its end. Reads of the disk are done before,
// without a lock (AddOnDisk()); a row that has been moved meanwhile is read
// again.
class RowStripe {
 public:
  // A block and the number of its rows that were in use.
  struct Piece {
    RowBlock block;
    uint32_t rows = 0;
    // The rows that count, by their numbers in the stripe, of which the block's
    // begin with `first`; null: all do.
    std::shared_ptr<const RowSet> changed = nullptr;
    uint32_t first = 0;

    bool Has(uint32_t row) const {
      return changed == nullptr || Contains(*changed, first + row);
    }
    // Returns the number of rows that count.
    uint32_t count() const;
  };
  // Rows of a stripe that a snapshot has.
  enum class Extent { kAll, kSinceNewest, kSinceOlder };

  // Most rows that have gone and are freed by one push.
  static constexpr size_t kExpiredAtOnce = 1024;

  // `max_load` is the index's (RowIndex). `arena` must outlive the stripe.
  // `max_rows`: of this stripe; 0: any number.
  RowStripe(std::shared_ptr<const RowRules> rules, RowArena& arena,
            double max_load, size_t max_rows);

  // Goes on with other rules, which have the same layout and memory, and bounds
  // of the same form.
  void UseRules(std::shared_ptr<const RowRules> rules, size_t max_rows)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Adds the run's rows that are on the disk.
  void AddOnDisk(const StripedIds::Run& run, FetchedRows& fetched) const
      ABSL_LOCKS_EXCLUDED(mu_);
  // Moves a row that is at a place on the disk to another one, if it is there.
  void MoveOnDisk(LogPlace place, const LoggedRow& row)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Copies the values of the run's rows, as they are after `updates` updates of
  // the table, to `out`. Rows that are missing are made; in a table with bounds
  // they are not, and have the values that they would begin with. `ids` and
  // `out` are the whole request's; the run knows its positions in them.
  // `fetched`: what AddOnDisk() added for the run.
  //   Unavailable, DataLoss  a row can't be read from the disk.
  absl::Status Pull(int64_t updates, const StripedIds::Run& run,
                    const std::byte* ids, float* out,
                    const FetchedRange& fetched = {}) ABSL_LOCKS_EXCLUDED(mu_);

  // The rows of a push. Row i of `run`, all of which are distinct, has the
  // `width` float32 at gradients[i], at any alignment, and occurs counts[i]
  // times; `counts` is empty if the table does not count.
  struct Gradients {
    StripedIds::Run run;
    absl::Span<const std::byte* const> gradients;
    absl::Span<const uint32_t> counts;
  };
  // Applies one update. Makes the rows that are missing, and due. If `out` is
  // not null, copies the new values there, as Pull() does.
  //   Unavailable, DataLoss  a row can't be read from the disk; nothing has
  //                          been applied.
  absl::Status Push(int64_t iterations, const Gradients& push,
                    const std::byte* ids, float* out,
                    const FetchedRange& fetched = {}) ABSL_LOCKS_EXCLUDED(mu_);

  // Adds rows with values and slots; the row at position i of the request is at
  // rows + i * layout.floats. It was touched last by touched[i], or, if
  // `touched` is null, by `update`.
  //   AlreadyExists  a row is there already; the message names it. Rows before
  //                  it are added.
  absl::Status Insert(const StripedIds::Run& run, const std::byte* ids,
                      const float* rows, const int64_t* touched, int64_t update)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Adds a count as a checkpoint has it, unless the id has a row.
  void InsertCount(const IdCounts::Entry& entry) ABSL_LOCKS_EXCLUDED(mu_);
  // Sorts the rows that were added by when they were touched. The first push
  // does so otherwise.
  void SortRows() ABSL_LOCKS_EXCLUDED(mu_);

  // Has what a later update than `most` touched count as touched by `most`; the
  // table has had `updates` updates. Before anything is pushed.
  void ClampTouched(int64_t updates, int64_t most) ABSL_LOCKS_EXCLUDED(mu_);

  // Returns how many of the run's ids have no row; an id counts as often as it
  // is in the run.
  size_t CountMissing(const StripedIds::Run& run) const
      ABSL_LOCKS_EXCLUDED(mu_);

  // Contents of a snapshot.
  struct Contents {
    std::vector<Piece> pieces = {};
    // The ids whose rows have gone since the snapshot to which it is compared.
    std::vector<uint64_t> removed = {};
    std::vector<std::shared_ptr<const IdCounts>> counts = {};
    // False: some changes are not there, for marks were lost (RowMarks).
    bool is_complete = true;
    // The rows on the disk: the table adds them.
    LogSnapshot on_disk = {};
  };
  // Numbers of the snapshots that RowMarks calls the newest and the older one,
  // as rows on the disk have them (LoggedRow::changed).
  struct Turns {
    uint32_t newest = 0;
    uint32_t older = 0;
  };
  // Appends all rows that are there after `updates` updates. Each block is
  // shared until one of its rows changes.
  void AddTo(int64_t updates, Contents& contents) ABSL_LOCKS_EXCLUDED(mu_);

  // Appends the rows of a snapshot since which changes are marked: all of them,
  // or those that have changed since the newest such snapshot or since the
  // older one (RowMarks). Blocks without such rows are not shared. `turns`: of
  // this snapshot on.
  void AddMarkedTo(int64_t updates, Extent extent, const Turns& turns,
                   Contents& contents) ABSL_LOCKS_EXCLUDED(mu_);

  // Frees all rows that have gone after `updates` updates, as AddTo() does.
  void FreeExpired(int64_t updates) ABSL_LOCKS_EXCLUDED(mu_);

  // Returns true if it is no longer known what has changed, until a snapshot
  // has all rows.
  bool has_lost_marks() const ABSL_LOCKS_EXCLUDED(mu_);

  // Tells `sample` all rows.
  void AddTo(RowSample& sample) const ABSL_LOCKS_EXCLUDED(mu_);

  size_t rows() const { return size_.load(std::memory_order_relaxed); }

 private:
  enum class Access { kRead, kWrite };

  // Writes the addresses of the run's rows to `rows` and prefetches the rows.
  // Rows that are missing are made; in a table with bounds they are null.
  template <Access kAccess>
  void Locate(const StripedIds::Run& run, const std::byte* ids, float** rows)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Makes null the rows of `run` that have gone before update `update`.
  void HideExpired(int64_t update, const StripedIds::Run& run,
                   float** rows) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Copies the values of `rows`, or initial values where one is null, to the
  // run's positions in `out`.
  void CopyValues(const StripedIds::Run& run, const std::byte* ids,
                  const float* const* rows, float* out) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Does the same where values are bfloat16.
  void CopyWidened(const StripedIds::Run& run, const std::byte* ids,
                   const float* const* rows, float* out) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  float* Row(uint32_t number) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  float* WritableRow(uint32_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void MakeUnique(size_t block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  uint32_t MakeRow(uint64_t hash, uint64_t id)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Writes the values and slots that the row of `id` begins with.
  void FillNew(uint64_t id, float* elements) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Adds a row with any contents, which is not marked, and returns its number.
  uint32_t AddRow(uint64_t hash, uint64_t id)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void UpdateOtherRows(int64_t iterations, const StripedIds::Run& touched)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AddAllTo(std::vector<Piece>& pieces) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AddChangedTo(Extent extent, Contents& contents)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Decides which ids of a push have rows, in a table with bounds: touches
  // rows, counts ids, makes rows and has others go. Before gradients are
  // applied.
  void Admit(int64_t update, const Gradients& push, const std::byte* ids)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Applies the gradients of the rows that are not null.
  void ApplyToPresent(int64_t iterations,
                      absl::Span<const std::byte* const> gradients,
                      float* const* rows) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Does the same where values are bfloat16.
  void ApplyWidened(int64_t iterations, const StripedIds::Run& run,
                    absl::Span<const std::byte* const> gradients,
                    float* const* rows) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns true if an id without a row gets one; counts it otherwise.
  bool IsDue(int64_t update, uint64_t hash, uint32_t occurrences)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Notes that an update has touched a row.
  void Touch(uint32_t number, int64_t update)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  int64_t TouchedAt(uint32_t number) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Removes up to `limit` rows that have gone before update `update`.
  void RemoveExpired(int64_t update, size_t limit)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Has room for one more row.
  void MakeRoom(int64_t update) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns the ids of the `count` rows that were touched first; of rows of one
  // update, those with the smallest ids.
  std::vector<uint64_t> OldestIds(size_t count) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Has a row go for good.
  void RemoveRow(uint32_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Takes a row out of memory; the last one takes its number.
  void TakeOut(uint32_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  uint64_t IdAt(uint32_t number) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SortIfNeeded() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns the counts, to be changed: no snapshot has them.
  IdCounts& OwnCounts() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Brings the totals up to date, at the end of what changes something.
  void NoteRows() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void NoteCounts() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AddCountsTo(Contents& contents) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool keeps_order() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return rules_->layout.timed && rules_->tier == nullptr;
  }
  // Returns the number of rows, in memory and on the disk.
  size_t size() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return index_.size() + (places_ == nullptr ? 0 : places_->size());
  }
  bool Has(uint64_t hash) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Functions for tables with a tier are in row_stripe_tier.cc.
  //
  // Brings all rows of the run into memory. Gives the lock away while it reads
  // rows that have been moved since they were fetched.
  absl::Status BringIn(const StripedIds::Run& run, const FetchedRange& fetched)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Brings a row into memory if it is still at its place.
  void Take(const FetchedRows& fetched, size_t i)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Sends rows to the disk until no more are in memory than may stay, or the
  // disk takes no more. Those that were used since it was last looked at them
  // stay at first.
  void SendOut() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  uint32_t NextToSendOut() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns false if the disk takes no more.
  bool SendOut(uint32_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Forgets a row on the disk for good.
  void RemoveOnDisk(uint64_t hash) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Removes the rows that have gone before update `update`: all of them, or
  // none if it has been looked at lately.
  void SweepExpired(int64_t update, bool all)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Does what OldestIds() does, without an order of touches.
  std::vector<uint64_t> OldestOfAll(size_t count) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void RemoveOldest(size_t count) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void NotePlaces() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  RowArena& arena_;
  std::atomic<size_t> size_ = 0;
  mutable absl::Mutex mu_;
  std::shared_ptr<const RowRules> rules_ ABSL_GUARDED_BY(mu_);
  RowIndex index_ ABSL_GUARDED_BY(mu_);
  std::vector<RowBlock> blocks_ ABSL_GUARDED_BY(mu_);
  // True if a snapshot may refer to the block. The block's own count would cost
  // a cache miss per row.
  std::vector<uint8_t> shared_ ABSL_GUARDED_BY(mu_);
  RowMarks marks_ ABSL_GUARDED_BY(mu_);

  // Most rows; 0: any number.
  size_t max_rows_ ABSL_GUARDED_BY(mu_);
  // Null: the table does not count ids without a row.
  std::shared_ptr<IdCounts> counts_ ABSL_GUARDED_BY(mu_);
  // True if a snapshot may have the counts.
  bool counts_are_shared_ ABSL_GUARDED_BY(mu_) = false;
  // Numbers that NoteCounts() has noted.
  size_t noted_ids_ ABSL_GUARDED_BY(mu_) = 0;
  size_t noted_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  // The rows in the order of their touches, if the table keeps that.
  TouchOrder order_ ABSL_GUARDED_BY(mu_);
  // False: rows were added in any order.
  bool is_sorted_ ABSL_GUARDED_BY(mu_) = true;

  // The rows on the disk; null: the table has no tier.
  std::unique_ptr<DiskPlaces> places_ ABSL_GUARDED_BY(mu_);
  Turns turns_ ABSL_GUARDED_BY(mu_);
  // True for each row in memory that was used since SendOut() looked at it, and
  // the number of the row at which it looks next.
  std::vector<uint8_t> used_ ABSL_GUARDED_BY(mu_);
  uint32_t hand_ ABSL_GUARDED_BY(mu_) = 0;
  // No row was touched last by an earlier update.
  int64_t oldest_touch_ ABSL_GUARDED_BY(mu_) = INT64_MAX;
  int64_t next_sweep_ ABSL_GUARDED_BY(mu_) = 0;
  // Numbers that NotePlaces() has noted.
  size_t noted_on_disk_ ABSL_GUARDED_BY(mu_) = 0;
  size_t noted_place_bytes_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_ROWS_ROW_STRIPE_H_
