#ifndef PARASOL_PS_ROWS_ROW_STRIPE_H_
#define PARASOL_PS_ROWS_ROW_STRIPE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "ml/initializer/row_initializer.h"
#include "ml/optimizer/optimizer.h"
#include "ps/rows/row_arena.h"
#include "ps/rows/row_block.h"
#include "ps/rows/row_index.h"
#include "ps/rows/row_memory.h"
#include "ps/rows/striped_ids.h"

namespace parasol {

// What the rows of a table have in common.
struct RowRules {
  RowLayout layout;
  RowInitializer initializer;
  std::unique_ptr<const Optimizer> optimizer;
  std::shared_ptr<RowMemory> memory;

  // Of its place in an index: 17 to 52 bytes, but the indexes of a table don't
  // grow together.
  static constexpr size_t kIndexBytes = 35;
  // What a row counts for.
  size_t bytes_per_row() const { return layout.bytes_per_row() + kIndexBytes; }
};

// The rows whose hashes begin with the same bits: the unit of locking. Rows are
// numbered in the order in which they were made, and stay where they are as
// long as no cut shares their block. Thread-safe.
class RowStripe {
 public:
  // One block and the rows of it that there were.
  struct Piece {
    RowBlock block;
    uint32_t rows = 0;
  };

  // Grows its index over `max_load`. `rules` and `arena` must outlive it.
  RowStripe(const RowRules& rules, RowArena& arena, double max_load)
      : rules_(rules), arena_(arena), index_(arena, max_load) {}

  // `ids` and `out` are those of the whole request: the run knows its positions
  // in them. Makes the rows that are missing.
  void Pull(const StripedIds::Run& run, const std::byte* ids, float* out)
      ABSL_LOCKS_EXCLUDED(mu_);

  // One update: row i of `run`, all distinct, with gradients[i * width…]. Makes
  // the rows that are missing.
  void Push(int64_t iterations, const StripedIds::Run& run,
            const std::byte* ids, const float* gradients)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Adds rows with values and slots: position i at rows + i * layout.floats.
  //   AlreadyExists  one of them is there: names it. Those before it are added.
  absl::Status Insert(const StripedIds::Run& run, const std::byte* ids,
                      const float* rows) ABSL_LOCKS_EXCLUDED(mu_);

  // How many of the run's ids, counted as often as they are in it, have no row.
  size_t CountMissing(const StripedIds::Run& run) const
      ABSL_LOCKS_EXCLUDED(mu_);

  // Appends all rows. They are shared until a row of theirs changes.
  void Share(std::vector<Piece>& pieces) ABSL_LOCKS_EXCLUDED(mu_);

  size_t rows() const { return size_.load(std::memory_order_relaxed); }

 private:
  enum class Access { kRead, kWrite };

  // The rows of a run, made where they are missing, on their way to the cache.
  template <Access kAccess>
  void Locate(const StripedIds::Run& run, const std::byte* ids, float** rows)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  float* Row(uint32_t number) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  float* WritableRow(uint32_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void MakeUnique(size_t block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  uint32_t MakeRow(uint64_t hash, uint64_t id)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Of any contents.
  uint32_t AddRow(uint64_t hash, uint64_t id)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void UpdateOtherRows(int64_t iterations, const StripedIds::Run& touched)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const RowRules& rules_;
  RowArena& arena_;
  std::atomic<size_t> size_ = 0;
  mutable absl::Mutex mu_;
  RowIndex index_ ABSL_GUARDED_BY(mu_);
  std::vector<RowBlock> blocks_ ABSL_GUARDED_BY(mu_);
  // Whether a cut may refer to the block: asking the block itself would cost a
  // cache miss a row.
  std::vector<uint8_t> shared_ ABSL_GUARDED_BY(mu_);
};

}  // namespace parasol

#endif  // PARASOL_PS_ROWS_ROW_STRIPE_H_
