#ifndef PARASOL_PS_SHARD_PARAMETER_SHARD_H_
#define PARASOL_PS_SHARD_PARAMETER_SHARD_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "cluster/rows/row_marks.h"
#include "cluster/rows/row_table.h"
#include "cluster/rpc/payload.h"
#include "proto/parameter.pb.h"
#include "ps/dense/dense_parts.h"
#include "ps/dense/part_optimizers.h"
#include "ps/journal/push_journal.h"
#include "ps/journal/push_record.h"
#include "ps/journal/standby_feed.h"
#include "ps/operation/operation.h"
#include "ps/shard/dedup_window.h"
#include "ps/shard/push_gate.h"
#include "ps/shard/shard_snapshot.h"
#include "ps/sparse/sparse_table.h"
#include "ps/step/non_finite.h"
#include "ps/step/step_state.h"

namespace parasol {

// The parts of dense variables and the rows of sparse tables that one shard
// owns, with the record of the pushes that are in them. Thread-safe.
//
// A push of asynchronous training is applied when it comes, once per (worker
// incarnation, sequence), and wholly or not at all. In synchronous training,
// see wire::SyncStep and StepState, an operation may wait for others; nothing
// but its callback is kept meanwhile.
class ParameterShard {
 public:
  // `tables` are in the order of the TableSpecs' numbers. Dense and sparse
  // tables must have been made with the aggregation that `sync` says.
  ParameterShard(std::unique_ptr<DenseParts> dense,
                 std::vector<std::unique_ptr<SparseTable>> tables,
                 std::optional<wire::SyncSpec> sync, const DedupWindows& dedup);

  // Takes a push from then on when the journal has it, and answers it when it
  // is kept there. Call it before the shard is used by several threads.
  void KeepJournal(std::unique_ptr<PushJournal> journal) {
    journal_ = std::move(journal);
  }
  // Null without one.
  PushJournal* journal() const { return journal_.get(); }

  // Appends each push to `feed` when it is applied, and answers it when the
  // feed's rule says so. Call it before the shard is used by several threads.
  void KeepFeed(std::shared_ptr<StandbyFeed> feed) { feed_ = std::move(feed); }
  // Null if the shard has no standby.
  const std::shared_ptr<StandbyFeed>& feed() const { return feed_; }

  // Carries out an operation; no reference to it or to its `payloads` is kept.
  // `acknowledged` is the message's; `memory`, if it is not null, has the
  // payloads, and may be kept for the standby.
  // Errors, after which nothing has been changed:
  //   InvalidArgument    the message, a payload's size or an element is wrong.
  //   ResourceExhausted  a sparse table can't make the rows.
  //   Unavailable        another thread is applying the same push right now; or
  //                      the shard is sealed; or the journal can't take it; or
  //                      a synchronous gradient has to be sent again, of which
  //                      a part may have been taken.
  // and the status of Abandon().
  void Execute(uint64_t worker_incarnation, const wire::Operation& operation,
               absl::Span<const PayloadView> payloads, CountedDone done,
               uint64_t acknowledged = 0, PayloadMemory* memory = nullptr);

  // Goes on with the optimizers, and with the initializers and seeds of `rows`,
  // which are in the order of the tables, as `order` says. Every push goes by
  // the old ones or by the new ones, in asynchronous training at all of its
  // places. Another `non_finite` than before may be given while no other thread
  // uses the shard.
  //   InvalidArgument  the slots or tables are others; nothing has changed.
  absl::Status TakeRules(PartOptimizers optimizers,
                         const std::vector<std::unique_ptr<RowTable>>& rows,
                         const wire::LoadRequest& order, NonFinite non_finite);

  // Waits for the pushes that are being applied, then holds up others while it
  // copies references to the arrays and blocks. With `stays` it answers pushes
  // of asynchronous training from then on as after Seal(), until GoOn(). `turn`
  // says which rows the tables give; all chunks are there.
  ShardSnapshot TakeSnapshot(bool stays = false, const SnapshotTurn& turn = {});
  // Returns true if all tables know what has changed since snapshot `number`,
  // of which a snapshot that follows may have the changes alone. Frees the rows
  // that have gone: were it the snapshot that finds out how many they are, it
  // would not be complete.
  bool Marks(uint64_t number);

  // Returns the numbers of updates of the chunks and tables, and lets none have
  // more than the largest of them until EndHold() or BeginSnapshotAt().
  //   FailedPrecondition  pushes are asynchronous.
  absl::StatusOr<UpdateBounds> Hold() ABSL_LOCKS_EXCLUDED(hold_mu_);
  // Makes the updates that a hold has put off, but for those behind a snapshot
  // with which the shard stays. May be called without a hold.
  void EndHold() ABSL_LOCKS_EXCLUDED(hold_mu_);

  // Returns OK if the shard can be cut at some number of updates, and at
  // `updates` if given.
  //   FailedPrecondition  pushes are asynchronous.
  //   InvalidArgument     no shard comes to have so many.
  absl::Status CheckCut(std::optional<int64_t> updates) const;

  // Lets chunks and tables that were restored, and have had fewer updates, go
  // on at `updates`: the cluster has completed that many steps.
  void GoOnAt(int64_t updates);

  // Begins to capture the state of every chunk and table after exactly
  // `updates` updates; synchronous training only. Ends a hold; with `stays`
  // nothing has more updates until GoOn(). `turn` is as for TakeSnapshot(). The
  // shard must outlive the snapshot. One at a time.
  //   FailedPrecondition  pushes are asynchronous.
  absl::StatusOr<std::unique_ptr<StepSnapshot>> BeginSnapshotAt(
      int64_t updates, bool stays = false, const SnapshotTurn& turn = {})
      ABSL_LOCKS_EXCLUDED(hold_mu_);

  // Begins a stream of the feed, and returns the contents that its records
  // follow. In synchronous training it waits for the step that follows those
  // that have begun; errors are StepSnapshot::Wait()'s.
  absl::StatusOr<ShardSnapshot> TakeSnapshotForStandby(
      Clock& clock, const std::function<bool()>& is_cancelled)
      ABSL_LOCKS_EXCLUDED(hold_mu_);

  // Returns true if a snapshot has had the shard stay.
  bool stays() const ABSL_LOCKS_EXCLUDED(hold_mu_);
  // Takes updates again after a snapshot with which the shard stayed.
  void GoOn() ABSL_LOCKS_EXCLUDED(hold_mu_);

  // Applies no more pushes of asynchronous training: returns when none is being
  // applied, and answers later ones with Unavailable.
  void Seal();
  // Number of pushes of asynchronous training that the shard has applied since
  // it was made; in synchronous training the largest number of updates that a
  // chunk or table has had.
  int64_t progress() const;

  // Ends all waits, and those to come, with `status`. Call it before the table
  // is replaced: a callback may hold a reference to the table's owner.
  void Abandon(const absl::Status& status);

  // Bytes of the dense parts' values and slots, and of the tables' rows, slots
  // included.
  struct Bytes {
    uint64_t values = 0;
    uint64_t slots = 0;
    uint64_t rows = 0;

    uint64_t all() const { return values + slots + rows; }
  };
  Bytes bytes() const;

 private:
  void PushDense(const ReceivedPush& push, CountedDone done);
  void PushRows(const ReceivedPush& push, CountedDone done);
  void PullDense(const wire::Pull& pull, CountedDone done);
  void PullRows(const wire::RowPull& pull,
                absl::Span<const PayloadView> payloads, CountedDone done);
  // Applies a push, or enters it into its step. `place`: its gradients, with
  // the chunks or the table that they go to. `message` is part of `push`.
  template <typename Message, typename Place>
  void PushTo(const Place& place, const ReceivedPush& push,
              const Message& message, CountedDone done);
  template <typename Message, typename Place>
  absl::StatusOr<OperationResult> Apply(const Place& place,
                                        const ReceivedPush& push,
                                        const Message& message);
  template <typename Message, typename Place>
  absl::StatusOr<OperationResult> ApplyAndPull(const Place& place,
                                               const ReceivedPush& push,
                                               const Message& message);
  // Enters a gradient into its step. It is answered when the step is complete
  // in all chunks or tables.
  template <typename Place>
  void ContributeStep(const Place& place, const ReceivedPush& push,
                      const StepPush& step, CountedDone done);
  // Calls `apply`, a push of `step` if that is given, when the journal, if
  // there is one, has the push; appends the push to the feed, if there is one
  // and the result is OK. Returns what `apply` does, a Status or StatusOr, or
  // why journal or feed do not have it.
  template <typename Call>
  auto ApplyKept(const ReceivedPush& push, std::optional<int64_t> step,
                 Call apply) -> decltype(apply());
  // Gives the result to `done` when journal and feed keep what they have.
  void Acknowledge(absl::StatusOr<OperationResult> result, CountedDone done);
  void AcknowledgeWhenFed(absl::StatusOr<OperationResult> result,
                          CountedDone done);

  // Copies references to all that there is, when no push is being applied, and
  // calls `at_cut` meanwhile.
  ShardSnapshot Cut(absl::FunctionRef<void()> at_cut, bool stays,
                    const SnapshotTurn& turn);
  absl::StatusOr<StepPush> CheckStep(const wire::SyncStep& step) const;
  absl::Status CheckMode(bool is_synchronous) const;
  absl::Status CheckWait(int64_t min_updates) const;
  absl::StatusOr<SparseTable*> TableNumber(uint32_t table) const;
  void HoldAt(int64_t updates, Released& released)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(hold_mu_);
  // Returns true if a chunk or table has had fewer updates.
  bool IsBehind(int64_t updates) const;

  const std::unique_ptr<DenseParts> dense_;
  const std::vector<std::unique_ptr<SparseTable>> tables_;
  const std::optional<wire::SyncSpec> sync_;

  std::unique_ptr<PushJournal> journal_;  // null: none
  std::shared_ptr<StandbyFeed> feed_;     // null: none
  PushGate gate_;
  // Serialises the holds of synchronous training; before the gate's locks.
  mutable absl::Mutex hold_mu_;
  // The number of updates with which the shard stays.
  int64_t stays_at_ ABSL_GUARDED_BY(hold_mu_) = INT64_MAX;
};

}  // namespace parasol

#endif  // PARASOL_PS_SHARD_PARAMETER_SHARD_H_
