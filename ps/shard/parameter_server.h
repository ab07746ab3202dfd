#ifndef PARASOL_PS_SHARD_PARAMETER_SERVER_H_
#define PARASOL_PS_SHARD_PARAMETER_SERVER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "base/work_helpers.h"
#include "cluster/checkpoint/order_gate.h"
#include "cluster/checkpoint/saved_file.h"
#include "cluster/inspection/trace_recorder.h"
#include "cluster/rows/row_marks.h"
#include "cluster/rpc/payload.h"
#include "proto/chief.pb.h"
#include "proto/parameter.pb.h"
#include "ps/operation/operation.h"
#include "ps/shard/cut_hold.h"
#include "ps/shard/load_shard.h"
#include "ps/shard/operation_watch.h"
#include "ps/shard/parameter_shard.h"
#include "ps/shard/ps_metrics.h"
#include "ps/shard/restore_journal.h"
#include "ps/shard/shard_snapshot.h"
#include "ps/shard/shard_state.h"
#include "ps/shard/snapshot_bases.h"
#include "ps/step/non_finite.h"
#include "storage/shard_index.h"

namespace parasol {

// The state and the operations of one ps, independent of the transport. It is
// empty until the chief orders it to load, then holds the variables of one run
// until the chief orders another load. Its functions are the calls of
// proto/parameter.proto, with their errors. Thread-safe.
class ParameterServer {
 public:
  struct Options {
    // Name of the ps in errors: "ps/1".
    std::string task;
    // The process, as the chief alone knows it: orders for another one are
    // refused, and operations for one with another PublicNumber().
    uint64_t incarnation = 0;
    uint64_t memory_limit_bytes = UINT64_MAX;
    NonFinite non_finite = NonFinite::kReject;
    // RowTable::Options::helpers.
    std::shared_ptr<WorkHelpers> helpers = nullptr;
    // Directory in which journals are; empty: the chief's checkpoint directory.
    std::string journal_directory = {};
    // LoadLimits::tier_directory.
    std::string tier_directory = {};
    // Called once, on any thread, when a row of a table with a tier is lost:
    // the process must end, and its successor loads the shard.
    std::function<void(const absl::Status& failure)> on_tier_failure = {};
    // Fetches the state of the standby that a Load names. Set with on_loaded,
    // or a Load that names a standby is refused.
    //   NotFound   it is gone for good; the message says why.
    //   any other  it may be had later.
    std::function<absl::StatusOr<ShardState>(const wire::LoadRequest& order)>
        take_standby = {};
    // Takes the standby itself, which is in this process, instead of its state.
    // Fails as take_standby does. Null: it is elsewhere.
    std::function<absl::StatusOr<StandbyShard>(const wire::LoadRequest& order)>
        take_shard = {};
    // Called when the ps is loaded, before a push is acknowledged; true: it did
    // not hold these parameters before. Null parameters: they are let go.
    std::function<void(const std::shared_ptr<ParameterShard>& parameters,
                       const wire::LoadRequest& order, bool is_new)>
        on_loaded = {};
    // Shows what the ps does; must outlive the server. Null: nowhere.
    TraceRecorder* trace = nullptr;
  };

  // `clock` and `metrics` must outlive the server.
  ParameterServer(Options options, Clock& clock, PsMetrics& metrics);
  ~ParameterServer();

  // Notes the chief with which the ps has registered: orders of earlier chiefs
  // are refused, and snapshots written in its checkpoint directory only.
  void Registered(int64_t chief_epoch,
                  const std::string& checkpoint_directory) {
    gate_.Registered(chief_epoch, checkpoint_directory);
  }

  // A ps that holds the run in the order's layout keeps its values, and goes on
  // with the order's optimizers, initializers and seed. Otherwise it lets its
  // variables go, once the order has been found acceptable and the checkpoint
  // there: an order that is refused changes nothing, and old and new variables
  // are never in memory together. Waits first for a Load that is still running:
  //   Unavailable         it takes too long.
  //   FailedPrecondition  the order is meant for another process, or comes from
  //                       a chief that was replaced.
  absl::StatusOr<wire::LoadResponse> Load(const wire::LoadRequest& request)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Writes the snapshot to a new file: of what has changed since the file that
  // the request names, or, if that is not known, the whole one, as the response
  // says. One at a time:
  //   Unavailable         another one is being written.
  //   InvalidArgument     the file is not in a working directory of the chief's
  //                       checkpoint directory, or its name is not plain, or
  //                       `since` is no file of a checkpoint.
  //   FailedPrecondition  as for Load(), or the shard has another layout.
  // In synchronous training it waits for the update, without a limit:
  //   Cancelled        `is_cancelled`, which is asked now and then.
  absl::StatusOr<wire::SnapshotResponse> Snapshot(
      const wire::SnapshotRequest& request,
      const std::function<bool()>& is_cancelled = [] { return false; })
      ABSL_LOCKS_EXCLUDED(mu_);

  // Holds the shard for CutHold::kLimit, or until Snapshot().
  absl::StatusOr<wire::PrepareSnapshotResponse> PrepareSnapshot(
      const wire::PrepareSnapshotRequest& request) ABSL_LOCKS_EXCLUDED(mu_);

  // Notes that the cluster has completed `steps` steps of `run_id`: variables
  // of the run that were restored, or will be, and are behind go on there
  // (synchronous training).
  void GoOnAt(absl::string_view run_id, int64_t steps) ABSL_LOCKS_EXCLUDED(mu_);

  // Carries out one operation of a message. Keeps no reference to the message
  // after it returns, but perhaps its payloads' `memory`. `done` is called
  // before that, or later if the operation has to wait: at the latest when the
  // variables are replaced or the server is destroyed.
  void Execute(const ReceivedMessage& message, size_t operation,
               OperationDone done, PayloadMemory* memory = nullptr)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Answers every operation and snapshot that waits for other workers'
  // gradients, now and later, with Unavailable. A ps that leaves calls it.
  void EndWaits() const ABSL_LOCKS_EXCLUDED(mu_);

  // Applies no more pushes of asynchronous training, so that a snapshot that
  // follows has all that were acknowledged, and answers them with Unavailable:
  // workers resend them to the next ps. A ps that leaves calls it.
  void Seal() const ABSL_LOCKS_EXCLUDED(mu_);
  // The safety of the updates that a ps has.
  enum class Updates {
    kNone,     // there are none since the load
    kUnsaved,  // some would be lost if it ended
    kSaved,    // all are in a checkpoint that is complete
    kStaying,  // the same holds for all other ps, which take none any more
  };
  // Looks into the checkpoint directory.
  Updates updates() const ABSL_LOCKS_EXCLUDED(mu_);

  // The run and the layout whose variables the ps holds; empty and 0 if it
  // holds none.
  struct Holding {
    std::string run_id;
    uint64_t layout = 0;
  };
  Holding holding() const ABSL_LOCKS_EXCLUDED(mu_);
  // Returns ParameterShard::progress() of its shard; 0 without one.
  int64_t progress() const ABSL_LOCKS_EXCLUDED(mu_);
  // Bytes of the shard's values, slots and rows; 0 without one.
  uint64_t shard_bytes() const ABSL_LOCKS_EXCLUDED(mu_);

  // Returns what the ps does. Called once for each report to the chief.
  wire::PsLoad LoadNow() ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the thread, as gettid() names it, whose operation goes on for the
  // longest; 0: none is in one.
  int BusiestThread() const { return watch_.BusiestThread(); }

 private:
  // Immutable, but for the contents of `parameters` and what a snapshot notes.
  struct Shard {
    Shard(const wire::LoadRequest& order,
          std::shared_ptr<ParameterShard> parameters, bool has_unsaved = false)
        : order(order),
          parameters(std::move(parameters)),
          loaded_progress(has_unsaved ? -1 : this->parameters->progress()),
          saved(std::make_shared<SavedFile>()),
          bases(std::make_shared<SnapshotBases>()) {}
    // Keeps the variables of `held` under another order.
    Shard(const wire::LoadRequest& order, const Shard& held)
        : order(order),
          parameters(held.parameters),
          loaded_progress(held.loaded_progress),
          saved(held.saved),
          bases(held.bases),
          saved_journal(held.saved_journal) {}

    const wire::LoadRequest order;
    const std::shared_ptr<ParameterShard> parameters;
    // ParameterShard::progress() when it was loaded; -1: it was loaded with
    // updates that no checkpoint has.
    const int64_t loaded_progress;
    // Lets the journal forget what the newest snapshot has, if its checkpoint
    // is complete. Called by one snapshot at a time.
    void ForgetWhatIsSaved();

    // The newest snapshot that was written, and its place in the journal.
    const std::shared_ptr<SavedFile> saved;
    // The snapshots to which others may be compared. Used by one snapshot at a
    // time.
    const std::shared_ptr<SnapshotBases> bases;
    std::optional<JournalPlace> saved_journal;
  };

  // Marks the server as loading and returns the shard that it holds, or null.
  absl::StatusOr<std::shared_ptr<Shard>> BeginLoad(
      const wire::OrderHeader& order) ABSL_LOCKS_EXCLUDED(mu_);
  // Makes `shard`, which may be null, the one that the server holds, and ends
  // the waits of operations of the one before, unless it has the same
  // parameters.
  void Hold(std::shared_ptr<Shard> shard) ABSL_LOCKS_EXCLUDED(mu_);
  void EndLoad() ABSL_LOCKS_EXCLUDED(mu_);
  // Loads what `held` does not have.
  absl::Status LoadAnew(const wire::LoadRequest& request,
                        std::shared_ptr<Shard> held);
  // Returns the limits for a load of the shard. If it asks for a journal, waits
  // a moment for the chief to say which directory that is kept in.
  absl::StatusOr<LoadLimits> LimitsFor(const wire::LoadRequest& request) const;
  // A standby that was taken: the shard itself, or its state.
  using Standby = std::variant<StandbyShard, ShardState>;
  // Takes the standby that the order names; nullopt: it names none, or that is
  // gone.
  absl::StatusOr<std::optional<Standby>> TakeStandby(
      const wire::LoadRequest& request);
  // Makes a call of take_shard or take_standby, or returns taken_.
  absl::StatusOr<Standby> Fetch(const wire::LoadRequest& request);
  // Returns the shard that the state has.
  absl::StatusOr<std::shared_ptr<ParameterShard>> ShardFrom(
      ShardState state, const wire::LoadRequest& request) const;

  // `is_of_standby`: the shard has a standby's state, and lost nothing.
  void NoteJournal(const RestoredJournal& journal, bool is_of_standby);
  // Logs a line about acknowledged pushes that are lost, and tells the chief of
  // it with the load's answer.
  void TellLost(std::string line);

  // Ends the waits of all operations and snapshots of `shard`.
  void Abandon(std::shared_ptr<Shard> shard) const;

  std::shared_ptr<Shard> shard() const ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the shard if it has this run, and this layout unless that is 0.
  //   Unavailable         there are no variables yet.
  //   FailedPrecondition  they are others; the message names both.
  absl::StatusOr<std::shared_ptr<Shard>> ShardOf(absl::string_view run_id,
                                                 uint64_t layout) const
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<std::shared_ptr<Shard>> ShardFor(
      const ReceivedMessage& message) const ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status BeginSnapshot(const std::string& file_name)
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<ShardSnapshot> TakeSnapshot(
      ParameterShard& parameters, const wire::SnapshotRequest& request,
      const SnapshotTurn& turn,
      const std::function<bool()>& is_cancelled) const;
  // Returns the snapshot since which the request asks for changes, if the
  // checkpoint that it names is complete and the shard knows what has changed
  // since; otherwise null: all is to be written.
  static const SnapshotBases::Base* BaseOf(const wire::SnapshotRequest& request,
                                           const Shard& shard);
  absl::StatusOr<wire::SnapshotResponse> WriteSnapshot(
      const wire::SnapshotRequest& request,
      const std::function<bool()>& is_cancelled);

  // Shows what this thread has done since `begin`, if a trace is wanted.
  void Trace(const char* name, absl::Time begin, int64_t bytes = 0) const;
  void TraceOperation(const wire::Operation& operation, absl::Time begin,
                      int64_t bytes) const;
  // Has the watch look at a push: whose it is, and one of its rows.
  void WatchPush(uint64_t worker, const wire::Operation& operation,
                 absl::Span<const PayloadView> payloads, absl::Time now);

  // Returns a callback that counts the operation's result in the metrics, then
  // calls `done`. It keeps `shard` until then.
  CountedDone CountedPush(std::shared_ptr<Shard> shard, uint64_t bytes,
                          OperationDone done);
  // Says that acknowledged pushes were lost before this ps was loaded.
  void NoteLost(uint64_t pushes);
  CountedDone CountedPull(std::shared_ptr<Shard> shard, OperationDone done);
  void CountPull(const absl::StatusOr<OperationResult>& result);
  void Reject(const absl::Status& status, const OperationDone& done);

  const Options options_;
  const uint64_t public_number_;
  Clock& clock_;
  PsMetrics& metrics_;
  OrderGate gate_;
  CutHold cut_hold_;
  OperationWatch watch_;

  mutable absl::Mutex mu_;
  bool loading_ ABSL_GUARDED_BY(mu_) = false;
  // Times since which it is loading, and the snapshot is being written.
  absl::Time loading_since_ ABSL_GUARDED_BY(mu_);
  absl::Time snapshot_since_ ABSL_GUARDED_BY(mu_);
  // The shard; null while there are no variables. Requests in progress keep a
  // reference to the shard they began with.
  std::shared_ptr<Shard> shard_ ABSL_GUARDED_BY(mu_);
  // True if Seal() was called: what is loaded later is sealed, too.
  mutable bool is_sealed_ ABSL_GUARDED_BY(mu_) = false;
  // The last arguments of GoOnAt().
  std::string told_run_ ABSL_GUARDED_BY(mu_);
  int64_t told_steps_ ABSL_GUARDED_BY(mu_) = 0;
  // The standby's shard that was taken for a load which has not succeeded yet,
  // and its number: nobody else has what is in it. Used by one load at a time.
  std::optional<std::pair<uint64_t, StandbyShard>> taken_;
  // Line of TellLost() about the shard; empty as a rule. Used by one load at a
  // time.
  std::string lost_;
  // The snapshot's file that is being written; empty if there is none.
  std::string snapshot_file_ ABSL_GUARDED_BY(mu_);
};

}  // namespace parasol

#endif  // PARASOL_PS_SHARD_PARAMETER_SERVER_H_
