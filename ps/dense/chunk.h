#ifndef PARASOL_PS_DENSE_CHUNK_H_
#define PARASOL_PS_DENSE_CHUNK_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "cluster/rows/row_memory.h"
#include "ml/optimizer/optimizer.h"
#include "ps/dense/array_pool.h"
#include "ps/dense/element_runs.h"
#include "ps/dense/received_gradient.h"
#include "ps/dense/step_sum.h"
#include "ps/step/latch.h"
#include "ps/step/step_state.h"

namespace parasol {

// The contents of a chunk at one moment. Later updates of the chunk do not
// change them.
struct ChunkContents {
  // Number of updates that the elements have had.
  int64_t updates = 0;
  ArrayRef value;
  // One array per slot name of the optimizer, each of value's size.
  std::vector<ArrayRef> slots = {};
};

// The optimizer and memory for updates, shared by all chunks of a part.
struct ChunkUpdater {
  const Optimizer& optimizer;
  ArrayPool& pool;
  // Number of gradients that make an update; synchronous training only.
  size_t replicas_to_aggregate = 0;
  // Reference to TrainingRules::memory.
  const std::shared_ptr<RowMemory>& memory;
};

// Up to kChunkElements consecutive elements of a part: the unit of locking and
// of copying on write. An array that something else refers to is never written
// to: the update goes to another array, which takes its place. Thread-safe.
//
// A chunk is trained either asynchronously, with Apply(), or synchronously,
// with the other functions: see StepState. In the latter case it keeps the
// values before its last update until the first gradient of the step after it
// comes. That gradient's worker had this step's values of all chunks and
// tables, so nobody will need older ones. Until then another chunk may lack a
// gradient of the older step, which a worker that has just come can compute.
class Chunk {
 public:
  // A chunk of a variable that is frozen gets no gradients. In synchronous
  // training it has always had as many updates as it is asked for.
  Chunk(ChunkContents contents, StepState::Origin origin,
        bool is_frozen = false);

  bool is_frozen() const { return is_frozen_; }

  size_t size() const { return size_; }

  // Applies the next size() elements of `gradient`, which must have them, and
  // returns the number of updates that the chunk has had then.
  int64_t Apply(const ChunkUpdater& updater, GradientReader& gradient)
      ABSL_LOCKS_EXCLUDED(mu_);

  absl::Status CheckNotAhead(int64_t step) const ABSL_LOCKS_EXCLUDED(mu_);

  // Takes the next size() elements of `gradient`; the last gradient of the step
  // makes the update. Counts `latch` down when the step is complete, or at once
  // if it returns kNoRoom. Call CheckNotAhead() first.
  StepState::Entry Contribute(const ChunkUpdater& updater, const StepPush& push,
                              GradientReader& gradient,
                              std::shared_ptr<Latch> latch, Released& released)
      ABSL_LOCKS_EXCLUDED(mu_);

  void NotifyAt(int64_t updates, std::shared_ptr<Latch> latch,
                Released& released) ABSL_LOCKS_EXCLUDED(mu_);

  // Lets the chunk have no more than `updates` updates, until another Hold().
  // Makes the update that an earlier Hold() kept from being made.
  void Hold(const ChunkUpdater& updater, int64_t updates, Released& released)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Lets the chunk have no more updates than it has, and returns how many.
  int64_t HoldNow() ABSL_LOCKS_EXCLUDED(mu_);

  // Goes on at `updates` if the chunk was restored and is behind: true then.
  bool GoOnAt(int64_t updates, Released& released) ABSL_LOCKS_EXCLUDED(mu_);

  // Writes the chunk's contents at exactly `updates` to `*out`, then counts
  // `latch` down.
  void SnapshotAt(int64_t updates, std::shared_ptr<ChunkContents> out,
                  std::shared_ptr<Latch> latch, Released& released)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Cancels the snapshot that would be written to `*out`.
  void CancelSnapshot(const ChunkContents* out) ABSL_LOCKS_EXCLUDED(mu_);

  void Abandon(const absl::Status& status, Released& released)
      ABSL_LOCKS_EXCLUDED(mu_);

  int64_t updates() const ABSL_LOCKS_EXCLUDED(mu_);
  // Returns, without the slots, the chunk's oldest contents that have had at
  // least `min_updates` updates; if there are none, its present contents.
  ChunkContents Value(int64_t min_updates) const ABSL_LOCKS_EXCLUDED(mu_);
  ChunkContents Snapshot() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // Returns a run of the gradient's next elements, at most `max_count`.
  using NextRun = absl::FunctionRef<ElementRuns::Run(size_t max_count)>;

  void Update(const ChunkUpdater& updater, NextRun next_run)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Makes the step's update if it is due.
  void CompleteIfDue(const ChunkUpdater& updater, Released& released)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void MakeSlotsUnique(ArrayPool& pool) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const size_t size_;
  const bool is_frozen_;
  mutable absl::Mutex mu_;
  // The contents, except `updates`, which `state_` has.
  ChunkContents arrays_ ABSL_GUARDED_BY(mu_);
  // The value before the last update; null if it is not kept.
  ArrayRef previous_ ABSL_GUARDED_BY(mu_);
  StepState state_ ABSL_GUARDED_BY(mu_);
  StepSum sum_ ABSL_GUARDED_BY(mu_);
};

}  // namespace parasol

#endif  // PARASOL_PS_DENSE_CHUNK_H_
