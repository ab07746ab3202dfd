#ifndef PARASOL_PS_SHARD_PARAMETER_TABLE_H_
#define PARASOL_PS_SHARD_PARAMETER_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "cluster/rpc/payload.h"
#include "proto/parameter.pb.h"
#include "ps/dense/dense_table.h"
#include "ps/operation/operation.h"
#include "ps/shard/dedup_window.h"
#include "ps/shard/table_cut.h"
#include "ps/sparse/sparse_table.h"
#include "ps/step/step_state.h"

namespace parasol {

// What one shard owns: parts of dense variables and rows of sparse tables, and
// which pushes are in them. Thread-safe.
//
// Asynchronous: a push is applied when it comes, once per (worker incarnation,
// sequence), and wholly or not at all. Synchronous: see wire::SyncStep and
// StepState; an operation may wait for others, holding nothing but its
// callback.
class ParameterTable {
 public:
  // `tables` are numbered as the TableSpecs. Dense and sparse tables are to
  // aggregate what `sync` says.
  ParameterTable(std::unique_ptr<DenseTable> dense,
                 std::vector<std::unique_ptr<SparseTable>> tables,
                 std::optional<wire::SyncSpec> sync, const DedupWindows& dedup);

  // One operation each, with its payloads, of which it keeps no reference.
  // Errors, after which nothing has been changed:
  //   InvalidArgument    the message, a payload's size or an element is wrong.
  //   ResourceExhausted  a sparse table can't make the rows.
  //   Unavailable        another thread is just applying the same push.
  // and that of Abandon().
  void Push(uint64_t worker_incarnation, const wire::Push& push,
            absl::Span<const PayloadView> payloads, OperationDone done)
      ABSL_LOCKS_EXCLUDED(cut_mu_);
  void Pull(uint64_t worker_incarnation, const wire::Pull& pull,
            OperationDone done);
  void PushRows(uint64_t worker_incarnation, const wire::RowPush& push,
                absl::Span<const PayloadView> payloads, OperationDone done)
      ABSL_LOCKS_EXCLUDED(cut_mu_);
  void PullRows(uint64_t worker_incarnation, const wire::RowPull& pull,
                absl::Span<const PayloadView> payloads, OperationDone done);

  // Waits for the pushes that are being applied, and holds up others for as
  // long as it takes to copy the references.
  TableCut Cut() ABSL_LOCKS_EXCLUDED(cut_mu_);

  // Synchronous: what everything holds after exactly so many updates. One at a
  // time.
  //   Aborted             something has had more already: names it.
  //   Unavailable         not within `limit`: names what it waits for.
  //   FailedPrecondition  pushes are asynchronous.
  //   Cancelled          `is_cancelled`, which is asked now and then.
  absl::StatusOr<TableCut> CutAt(
      int64_t updates, Clock& clock, absl::Duration limit,
      const std::function<bool()>& is_cancelled = [] { return false; });

  // Ends all waits, and those to come, with `status`. Before the table is
  // replaced: a callback may hold what holds the table.
  void Abandon(const absl::Status& status);

  uint64_t value_bytes() const { return dense_->value_bytes(); }
  uint64_t slot_bytes() const { return dense_->slot_bytes(); }
  // Of the sparse tables' rows, with their slots.
  uint64_t row_bytes() const;

 private:
  absl::StatusOr<OperationResult> ApplyOnce(
      uint64_t worker_incarnation, uint64_t sequence,
      absl::FunctionRef<absl::StatusOr<UpdateBounds>()> apply)
      ABSL_LOCKS_EXCLUDED(cut_mu_);
  // A synchronous push, which goes to so many places and is answered with their
  // `updates` when its step is complete in all of them.
  using Contribute = absl::FunctionRef<StepEntries(
      const std::shared_ptr<Latch>& latch, Released& released)>;
  void ContributeStep(size_t places, Contribute contribute,
                      std::function<UpdateBounds()> updates, OperationDone done)
      ABSL_LOCKS_EXCLUDED(cut_mu_);

  absl::StatusOr<StepPush> CheckStep(uint64_t worker_incarnation,
                                     const wire::SyncStep& step) const;
  absl::Status CheckMode(bool is_synchronous) const;
  absl::Status CheckWait(int64_t min_updates) const;
  absl::StatusOr<SparseTable*> TableNumber(uint32_t table) const;

  const std::unique_ptr<DenseTable> dense_;
  const std::vector<std::unique_ptr<SparseTable>> tables_;
  const std::optional<wire::SyncSpec> sync_;

  // Shared: a push is claimed and being applied. Exclusive: there is none.
  // Taken before dedup_mu_ and a chunk's or table's lock.
  mutable absl::Mutex cut_mu_;
  mutable absl::Mutex dedup_mu_ ABSL_ACQUIRED_AFTER(cut_mu_);
  DedupIndex dedup_ ABSL_GUARDED_BY(dedup_mu_);
};

}  // namespace parasol

#endif  // PARASOL_PS_SHARD_PARAMETER_TABLE_H_
