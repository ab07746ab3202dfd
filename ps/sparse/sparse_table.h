#ifndef PARASOL_PS_SPARSE_SPARSE_TABLE_H_
#define PARASOL_PS_SPARSE_SPARSE_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "cluster/replica_sum/row_accumulator.h"
#include "cluster/rows/row_marks.h"
#include "cluster/rows/row_snapshot.h"
#include "cluster/rows/row_table.h"
#include "cluster/rpc/payload.h"
#include "proto/job.pb.h"
#include "proto/parameter.pb.h"
#include "ps/operation/operation.h"
#include "ps/sparse/received_rows.h"
#include "ps/sparse/row_values.h"
#include "ps/sparse/table_metrics.h"
#include "ps/step/latch.h"
#include "ps/step/step_state.h"
#include "ps/step/training_rules.h"

namespace parasol {

// A sparse table as pushes and pulls find it: its rows, and the gradients of
// its current synchronous step. Thread-safe.
//
// A table is trained either asynchronously, with Apply(), or synchronously. In
// the latter case it is one place, as a chunk is, with the functions of Chunk.
// It keeps the values that the rows of its last update had before, as a chunk
// keeps its value. Rows that only an optimizer's other_rows() touched (Adam's)
// have no such values: they are given as they are.
class SparseTable {
 public:
  // `metrics` may be null.
  SparseTable(std::unique_ptr<RowTable> rows, const TrainingRules& rules,
              std::unique_ptr<TableMetrics> metrics = nullptr);

  const std::string& name() const { return rows_->name(); }
  // Returns the rows, to be given the rules of other ones.
  RowTable& rows() { return *rows_; }

  // Returns the rows and gradients that may be applied; they point into the
  // payloads.
  //   InvalidArgument  the number of payloads, their sizes or the encoding are
  //                    wrong, or the values that are asked for exceed 48 MiB.
  //   OutOfRange       an element is not finite; the message names it.
  absl::StatusOr<ReceivedRows> Parse(
      const wire::RowPush& push, absl::Span<const PayloadView> payloads) const;
  // Returns the ids of a pull. Errors as above; InvalidArgument also if the
  // answer is over 48 MiB.
  absl::StatusOr<ReceivedRows> Parse(
      const wire::RowPull& pull, absl::Span<const PayloadView> payloads) const;

  // Makes one update; asynchronous training only.
  //   ResourceExhausted  missing rows don't fit in the memory limit; nothing
  //                      has been changed.
  absl::StatusOr<UpdateBounds> Apply(const ReceivedRows& gradients);
  // Makes one update and returns the new values of its rows, as Pull() would
  // right after; asynchronous training only. Fails as Apply() does.
  struct Pulled {
    PayloadRef payload = {};
    UpdateBounds updates;
  };
  absl::StatusOr<Pulled> ApplyAndPull(const ReceivedRows& gradients,
                                      job::Encoding encoding);

  // DenseParts::UseNonFinite().
  void UseNonFinite(NonFinite policy) {
    if (rules_.non_finite != policy) rules_.non_finite = policy;
  }

  absl::Status CheckNotAhead(int64_t step) const ABSL_LOCKS_EXCLUDED(mu_);
  // Takes a gradient as Chunk::Contribute() does. If the update that completes
  // the step fails, every operation that waits for it fails too: training can't
  // go on.
  StepEntries Contribute(const StepPush& push, const ReceivedRows& gradients,
                         std::shared_ptr<Latch> latch, Released& released)
      ABSL_LOCKS_EXCLUDED(mu_);
  void NotifyAt(int64_t updates, std::shared_ptr<Latch> latch,
                Released& released) ABSL_LOCKS_EXCLUDED(mu_);
  void Hold(int64_t updates, Released& released) ABSL_LOCKS_EXCLUDED(mu_);
  int64_t HoldNow() ABSL_LOCKS_EXCLUDED(mu_);
  bool GoOnAt(int64_t updates, Released& released) ABSL_LOCKS_EXCLUDED(mu_);
  void SnapshotAt(int64_t updates, const SnapshotTurn& turn,
                  std::shared_ptr<std::optional<RowSnapshot>> out,
                  std::shared_ptr<Latch> latch, Released& released)
      ABSL_LOCKS_EXCLUDED(mu_);
  void CancelSnapshot(const std::optional<RowSnapshot>* out)
      ABSL_LOCKS_EXCLUDED(mu_);
  void Abandon(const absl::Status& status, Released& released)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Returns the rows; of rows that are missing, their initial values, with
  // which they are made unless the table has bounds. In synchronous training
  // returns the table's oldest rows that have had at least `min_updates`
  // updates; if there are none, its present rows.
  //   ResourceExhausted  as Apply().
  absl::StatusOr<Pulled> Pull(const ReceivedRows& ids, job::Encoding encoding,
                              int64_t min_updates) const
      ABSL_LOCKS_EXCLUDED(mu_);

  // Takes the snapshot as RowTable::TakeSnapshot() does.
  RowSnapshot TakeSnapshot(const SnapshotTurn& turn = {})
      ABSL_LOCKS_EXCLUDED(mu_);
  UpdateBounds updates() const ABSL_LOCKS_EXCLUDED(mu_);
  size_t memory_bytes() const { return rows_->memory_bytes(); }

 private:
  absl::Status CheckFinite(const ReceivedRows& gradients) const;
  // Makes the step's update if it is due. An update that fails abandons the
  // table.
  void CompleteIfDue(Released& released) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status ApplyMeans() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Writes the rows to `values` as Pull() returns them, and how many updates
  // they have had to `updates`.
  absl::Status ReadRows(const ReceivedRows& ids, int64_t min_updates,
                        float* values, UpdateBounds& updates) const
      ABSL_LOCKS_EXCLUDED(mu_);

  void ShowMetrics() const {
    if (metrics_ != nullptr) metrics_->Show(rows_->totals());
  }

  const std::unique_ptr<RowTable> rows_;
  TrainingRules rules_;
  const std::unique_ptr<TableMetrics> metrics_;

  mutable absl::Mutex mu_;
  StepState state_ ABSL_GUARDED_BY(mu_);
  RowAccumulator sums_ ABSL_GUARDED_BY(mu_);
  // The values before the last update; nullopt if they are not kept.
  std::optional<RowValues> previous_ ABSL_GUARDED_BY(mu_);
};

}  // namespace parasol

#endif  // PARASOL_PS_SPARSE_SPARSE_TABLE_H_
