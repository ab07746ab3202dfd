#ifndef PARASOL_PS_SHARD_TABLE_CUT_H_
#define PARASOL_PS_SHARD_TABLE_CUT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "ps/dense/chunk.h"
#include "ps/dense/dense_table.h"
#include "ps/rows/row_cut.h"
#include "ps/shard/dedup_window.h"
#include "ps/sparse/sparse_table.h"
#include "ps/step/latch.h"

namespace parasol {

// Everything a shard held at one moment: each push is in it with its sequence,
// or neither is. Holds references, no copies: while it lives, a push to a chunk
// costs that chunk's memory once more.
struct TableCut {
  struct Chunk {
    std::string variable;
    int64_t first_element = 0;
    ChunkContents contents;
  };
  // Ascending by (variable, first_element).
  std::vector<Chunk> chunks;
  // Ascending by name.
  std::vector<RowCut> tables;
  DedupWindows dedup;
};

// The cut of `contents`, which are as the layout numbers the chunks, and
// `tables`, in any order.
TableCut NamedCut(const TableLayout& layout,
                  std::vector<ChunkContents> contents,
                  std::vector<RowCut> tables);

// A cut of a synchronously trained shard that is taken place by place, of each
// chunk and each sparse table right after its so many updates, while the others
// go on. Until it is destroyed the places are armed.
class StepCut {
 public:
  using SparseTables = absl::Span<const std::unique_ptr<SparseTable>>;

  // Both must outlive it.
  StepCut(DenseTable& dense, SparseTables tables, int64_t updates);
  ~StepCut();
  StepCut(const StepCut&) = delete;
  StepCut& operator=(const StepCut&) = delete;

  // The cut, without dedup windows. Call it once.
  //   Aborted      a place has had more updates already: names it.
  //   Unavailable  not within `limit`: names a place that it waits for.
  //   Cancelled    `is_cancelled`, which is asked now and then.
  absl::StatusOr<TableCut> Wait(Clock& clock, absl::Duration limit,
                                const std::function<bool()>& is_cancelled);

 private:
  // What the places write to; they may let go of it after the cut does.
  struct Captured {
    std::vector<ChunkContents> chunks;
    std::vector<std::optional<RowCut>> tables;

    absl::Mutex mu;
    std::optional<absl::Status> done ABSL_GUARDED_BY(mu);
  };

  // For the place of that name.
  std::shared_ptr<Latch> LatchFor(std::string name) const;
  std::string ChunkName(size_t chunk) const;
  absl::Status NotYet() const;

  DenseTable& dense_;
  const SparseTables tables_;
  const int64_t updates_;
  const std::shared_ptr<Captured> captured_;
  const std::shared_ptr<Latch> all_;
};

}  // namespace parasol

#endif  // PARASOL_PS_SHARD_TABLE_CUT_H_
