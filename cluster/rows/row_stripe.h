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
#include "cluster/rows/row_arena.h"
#include "cluster/rows/row_block.h"
#include "cluster/rows/row_index.h"
#include "cluster/rows/row_marks.h"
#include "cluster/rows/row_memory.h"
#include "cluster/rows/row_sample.h"
#include "cluster/rows/striped_ids.h"
#include "ml/initializer/row_initializer.h"
#include "ml/optimizer/optimizer.h"

namespace parasol {

// The layout, initializer, optimizer and memory limit that all rows of a table
// share. A table may be given others of the same layout and memory.
struct RowRules {
  RowLayout layout;
  RowInitializer initializer;
  std::shared_ptr<const Optimizer> optimizer;
  std::shared_ptr<RowMemory> memory;

  // Bytes per id that an index takes, on average: 17 to 52. The indexes of a
  // table don't grow together.
  static constexpr size_t kIndexBytes = 35;
  // Bytes per row that are counted against the memory limit.
  static size_t BytesPerRow(const RowLayout& layout) {
    return layout.bytes_per_row() + kIndexBytes;
  }
};

// The rows whose hashes begin with the same bits: the unit of locking. Rows are
// numbered in the order in which they were made, and stay in place as long as
// no snapshot shares their block. Thread-safe.
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

  // `max_load` is the index's (RowIndex). `arena` must outlive the stripe.
  RowStripe(std::shared_ptr<const RowRules> rules, RowArena& arena,
            double max_load)
      : arena_(arena), rules_(std::move(rules)), index_(arena, max_load) {}

  // Goes on with other rules, which have the same layout and memory.
  void UseRules(std::shared_ptr<const RowRules> rules) ABSL_LOCKS_EXCLUDED(mu_);

  // Copies the values of the run's rows to `out`; makes the rows that are
  // missing. `ids` and `out` are the whole request's; the run knows its
  // positions in them.
  void Pull(const StripedIds::Run& run, const std::byte* ids, float* out)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Applies one update. Row i of `run`, all of which are distinct, has the
  // `width` float32 at gradients[i], at any alignment. Makes the rows that are
  // missing. If `out` is not null, copies the new values there, as Pull() does.
  void Push(int64_t iterations, const StripedIds::Run& run,
            const std::byte* ids, absl::Span<const std::byte* const> gradients,
            float* out) ABSL_LOCKS_EXCLUDED(mu_);

  // Adds rows with values and slots; the row at position i of the request is at
  // rows + i * layout.floats.
  //   AlreadyExists  a row is there already; the message names it. Rows before
  //                  it are added.
  absl::Status Insert(const StripedIds::Run& run, const std::byte* ids,
                      const float* rows) ABSL_LOCKS_EXCLUDED(mu_);

  // Returns how many of the run's ids have no row; an id counts as often as it
  // is in the run.
  size_t CountMissing(const StripedIds::Run& run) const
      ABSL_LOCKS_EXCLUDED(mu_);

  // Appends all rows to `pieces`. Each block is shared until one of its rows
  // changes.
  void AddTo(std::vector<Piece>& pieces) ABSL_LOCKS_EXCLUDED(mu_);

  // Appends the rows of a snapshot since which changes are marked: all of them,
  // or those that have changed since the newest such snapshot or since the
  // older one (RowMarks). Blocks without such rows are not shared.
  void AddMarkedTo(std::vector<Piece>& pieces, Extent extent)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Tells `sample` all rows.
  void AddTo(RowSample& sample) const ABSL_LOCKS_EXCLUDED(mu_);

  size_t rows() const { return size_.load(std::memory_order_relaxed); }

 private:
  enum class Access { kRead, kWrite };

  // Writes the addresses of the run's rows to `rows` and prefetches the rows.
  // Makes rows that are missing.
  template <Access kAccess>
  void Locate(const StripedIds::Run& run, const std::byte* ids, float** rows)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  float* Row(uint32_t number) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  float* WritableRow(uint32_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void MakeUnique(size_t block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  uint32_t MakeRow(uint64_t hash, uint64_t id)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Adds a row with any contents and returns its number.
  uint32_t AddRow(uint64_t hash, uint64_t id)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void UpdateOtherRows(int64_t iterations, const StripedIds::Run& touched)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AddAllTo(std::vector<Piece>& pieces) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

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
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_ROWS_ROW_STRIPE_H_
