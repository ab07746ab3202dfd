#ifndef PARASOL_PS_SHARD_SHARD_SNAPSHOT_H_
#define PARASOL_PS_SHARD_SHARD_SNAPSHOT_H_

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
#include "cluster/rows/row_marks.h"
#include "cluster/rows/row_snapshot.h"
#include "ps/dense/chunk.h"
#include "ps/dense/dense_parts.h"
#include "ps/shard/dedup_window.h"
#include "ps/sparse/sparse_table.h"
#include "ps/step/latch.h"
#include "storage/shard_index.h"

namespace parasol {

// The contents of a shard at one moment, or the part of them that has changed
// since another one: each push is in it together with its sequence number, or
// neither is. Holds references, no copies: a push to a chunk while the snapshot
// lives takes that chunk's memory once more.
struct ShardSnapshot {
  struct Chunk {
    std::string variable;
    int64_t first_element = 0;
    ChunkContents contents;
    // True if the chunk's values never change; its number of updates may.
    bool is_frozen = false;
  };
  // The chunks, ascending by (variable, first_element).
  std::vector<Chunk> chunks;
  // The sparse tables, ascending by name.
  std::vector<RowSnapshot> tables;
  DedupWindows dedup;
  // ParameterShard::progress() of the moment.
  int64_t progress = 0;
  // The place in the shard's journal from which on pushes may be missing.
  std::optional<JournalPlace> journal;
  // The file that has what this snapshot lacks; nullopt if it lacks nothing.
  std::optional<IncrementBase> base;
};

// Returns the number of updates of each chunk of a snapshot that lacks nothing.
std::vector<int64_t> UpdatesOf(const ShardSnapshot& snapshot);

// Lets the snapshot lack the chunks that have not changed since another
// snapshot of the shard, of which `updates` are UpdatesOf().
void DropUnchanged(const std::vector<int64_t>& updates,
                   ShardSnapshot& snapshot);

// Returns the snapshot of `contents`, which are in the layout's order of
// chunks, and `tables`, in any order.
ShardSnapshot NamedSnapshot(const PartLayout& layout,
                            std::vector<ChunkContents> contents,
                            std::vector<RowSnapshot> tables);

// A snapshot of a synchronously trained shard. The snapshot of each chunk and
// each sparse table is taken right after its `updates`-th update, while the
// others go on. They may be taken until the StepSnapshot is destroyed.
class StepSnapshot {
 public:
  using SparseTables = absl::Span<const std::unique_ptr<SparseTable>>;

  // `dense` and `tables` must outlive the snapshot. `turn` says which rows the
  // tables give.
  StepSnapshot(DenseParts& dense, SparseTables tables, int64_t updates,
               const SnapshotTurn& turn = {});
  ~StepSnapshot();
  StepSnapshot(const StepSnapshot&) = delete;
  StepSnapshot& operator=(const StepSnapshot&) = delete;

  // Gives the snapshot its ShardSnapshot::journal. Call it before Wait().
  void SetJournal(const JournalPlace& place) { journal_ = place; }
  // Returns true if Wait() would not wait.
  bool IsDone() const;
  // Returns the snapshot, without dedup windows. Waits for as long as the
  // caller does; the log names what it waits for. Call it once.
  //   Aborted    a chunk or table has had more updates already; the message
  //              names it.
  //   Cancelled  `is_cancelled` returned true; it is asked now and then.
  // and the status with which the shard was abandoned.
  absl::StatusOr<ShardSnapshot> Wait(Clock& clock,
                                     const std::function<bool()>& is_cancelled);

 private:
  // The memory that the chunks and tables write to. They may let go of it after
  // the snapshot does.
  struct Taken {
    std::vector<ChunkContents> chunks;
    std::vector<std::optional<RowSnapshot>> tables;

    absl::Mutex mu;
    std::optional<absl::Status> done ABSL_GUARDED_BY(mu);
  };

  // Returns the latch of the chunk or table called `name`.
  std::shared_ptr<Latch> LatchFor(std::string name) const;
  std::string ChunkName(size_t chunk) const;
  // Names a chunk or table that has not had the updates yet.
  std::string Awaited() const;

  DenseParts& dense_;
  const SparseTables tables_;
  const int64_t updates_;
  std::optional<JournalPlace> journal_;
  const std::shared_ptr<Taken> taken_;
  const std::shared_ptr<Latch> all_;
};

}  // namespace parasol

#endif  // PARASOL_PS_SHARD_SHARD_SNAPSHOT_H_
