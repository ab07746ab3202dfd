#ifndef PARASOL_WORKER_GROUP_GROUP_STATE_H_
#define PARASOL_WORKER_GROUP_GROUP_STATE_H_

#include <compare>
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
#include "base/clock.h"
#include "ml/layer/variable_spec.h"
#include "parameters/composition.h"
#include "parameters/training_parameters.h"
#include "proto/checkpoint.pb.h"
#include "proto/job.pb.h"
#include "worker/store/parameter_store.h"

namespace parasol {

// The variables, slots and tables that one worker of multi-worker mirrored has,
// and the number of steps that they have had. All workers of a group have the
// same. A worker begins without any: it loads them, or takes a peer's. A state
// has no tables where ps have them.
//
// Invariant: they are always those of a whole step. Thread-safe.
class GroupState {
 public:
  // A state's place in a run: the greater of two is the one to go on with. Of
  // two of the same step, on devices that round in no fixed way, others may
  // have gone on with the one that was made in the later group.
  struct Version {
    int64_t step = kNone;
    int64_t epoch = 0;  // the group that made the last step; 0: loaded

    bool is_there() const { return step != kNone; }
    friend auto operator<=>(const Version&, const Version&) = default;
  };
  static constexpr int64_t kNone = -1;
  // Longest time that a hold lasts.
  static constexpr absl::Duration kHoldLimit = absl::Seconds(5);

  // `clock` must outlive the state. The state has the job's tables if `rows`
  // are here. `elsewhere`, which is borrowed: where the variables lie,
  // MakeStep() updates them and other threads may use them meanwhile, and then
  // there are no tables; null: they are the state's own.
  GroupState(std::vector<VariableSpec> variables, job::Job job, Clock& clock,
             TableStore rows = TableStore::kHost,
             StoredVariables* elsewhere = nullptr);

  const std::vector<VariableSpec>& variables() const { return variables_; }
  const job::Job& job() const { return job_; }
  // Number of tables that the state has.
  int num_tables() const;

  // Returns variables with their initial values, which are no part of the state
  // yet: for Replace(). Errors are those of ParameterStore::Create().
  absl::StatusOr<std::unique_ptr<ParameterStore>> MakeParameters() const;
  // Makes `parameters` the state, unless it is at `version` or later. Ends this
  // state, with Unavailable, if others than its values of that step were
  // pulled: gradients may be of these; and if the variables cannot be taken
  // over, with the error of that.
  void Replace(std::unique_ptr<ParameterStore> parameters,
               const Version& version) ABSL_LOCKS_EXCLUDED(data_mu_, mu_);
  // Makes `parameters`, loaded ones, the state if there is none yet: another
  // one, a peer's, may be that of a group which makes steps.
  void Load(std::unique_ptr<ParameterStore> parameters, int64_t step)
      ABSL_LOCKS_EXCLUDED(data_mu_, mu_);

  Version version() const ABSL_LOCKS_EXCLUDED(mu_);

  // Notes that a state which was loaded goes on, without updates, at `step` if
  // it is behind that: ps have the cluster's tables of that step, and no worker
  // the variables.
  void SetGoesOnAt(int64_t step) ABSL_LOCKS_EXCLUDED(mu_);
  int64_t goes_on_at() const ABSL_LOCKS_EXCLUDED(mu_);
  // Counts the state as a loaded one of `step` if it is behind that, with a
  // warning: the updates in between are lost.
  void GoOnAt(int64_t step) ABSL_LOCKS_EXCLUDED(data_mu_, mu_);
  // Blocks until the state has had `step` steps, for up to `limit`. Returns OK
  // then, nullopt after the limit, and otherwise what was given to End().
  std::optional<absl::Status> AwaitStep(int64_t step, absl::Duration limit)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Ends all waits with `why`, an error. The first one counts.
  void End(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status ended() const ABSL_LOCKS_EXCLUDED(mu_);

  // Copies values and rows, and returns the step that they are of; of a request
  // of nothing the step that the variables have, which are read elsewhere.
  //   FailedPrecondition  there is no state yet.
  absl::StatusOr<int64_t> Pull(TrainingParameters::PullRequest request)
      ABSL_LOCKS_EXCLUDED(data_mu_);

  // Makes one step, in the group `epoch`, when no hold forbids it: `update`
  // changes all variables and tables. After an error of it the state is gone.
  absl::Status MakeStep(
      int64_t epoch,
      absl::FunctionRef<absl::Status(ParameterStore& parameters)> update)
      ABSL_LOCKS_EXCLUDED(data_mu_, mu_);

  // Calls `read` with the state, which does not change meanwhile: also the
  // tables' rows that are there may be read.
  //   FailedPrecondition  there is no state yet.
  absl::Status Read(
      absl::FunctionRef<absl::Status(ParameterStore& parameters)> read)
      ABSL_LOCKS_EXCLUDED(data_mu_);

  // Lets the state have no more steps than it has, for kHoldLimit or until
  // Save(), and returns their number.
  //   FailedPrecondition  there is no state yet.
  absl::StatusOr<int64_t> Hold() ABSL_LOCKS_EXCLUDED(mu_);
  // Waits until the state has had `step` steps, if given, returns a copy of it,
  // and ends the hold: steps are made while the copy is written. With `stays`
  // none is made until GoOn(). Polls `is_cancelled`.
  //   Aborted             it has had more steps.
  //   Cancelled           `is_cancelled` returned true.
  //   FailedPrecondition  there is no state yet.
  absl::StatusOr<StoreSnapshot> TakeSnapshot(
      std::optional<int64_t> step, const std::function<bool()>& is_cancelled,
      bool stays = false) ABSL_LOCKS_EXCLUDED(data_mu_, mu_);
  // Writes such a copy to the file at `path`, a checkpoint's only one. Errors
  // are those of TakeSnapshot() and ShardWriter.
  absl::StatusOr<durable::CheckpointFile> Save(
      std::optional<int64_t> step, const std::string& path,
      const std::function<bool()>& is_cancelled, bool stays = false)
      ABSL_LOCKS_EXCLUDED(data_mu_, mu_);
  // Makes steps again after a snapshot with which the state stays.
  void GoOn() ABSL_LOCKS_EXCLUDED(mu_);
  // Returns true if a snapshot has had the state stay.
  bool stays() const ABSL_LOCKS_EXCLUDED(mu_);
  // Has MakeStep() return Cancelled while the state stays, instead of waiting:
  // the worker is about to end.
  void EndStepsThatStay() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // The steps that the state may have had, until a time: the infinite future if
  // it stays.
  struct HeldAt {
    int64_t step = 0;
    absl::Time until = absl::InfinitePast();
  };

  // A lock of data_mu_ to read: exclusive where the variables are elsewhere,
  // which one thread at a time may read.
  class ReadLock;

  // Makes `parameters` those that it has, or copies them elsewhere.
  //   any error  that of StoredVariables; there is no state then.
  absl::Status Take(std::unique_ptr<ParameterStore> parameters)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(data_mu_);
  absl::Status CopyElsewhere(ParameterStore& from)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(data_mu_);
  bool IsStaying() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return held_ && held_->until == absl::InfiniteFuture();
  }
  absl::Status AwaitNoHold() ABSL_LOCKS_EXCLUDED(mu_);
  // Returns a copy of the state. Errors are Aborted and FailedPrecondition of
  // TakeSnapshot().
  absl::StatusOr<StoreSnapshot> CopyAt(std::optional<int64_t> step)
      ABSL_SHARED_LOCKS_REQUIRED(data_mu_);
  absl::Status AwaitCut(int64_t step, const std::function<bool()>& is_cancelled)
      ABSL_LOCKS_EXCLUDED(mu_);
  void SetVersion(const Version& version) ABSL_LOCKS_EXCLUDED(mu_);

  const std::vector<VariableSpec> variables_;
  const job::Job job_;
  Clock& clock_;
  const TableStore rows_;
  StoredVariables* const elsewhere_;  // null: in `parameters_`

  // Held shared to read the parameters, exclusively to change them; before mu_.
  absl::Mutex data_mu_;
  std::unique_ptr<ParameterStore> parameters_ ABSL_GUARDED_BY(data_mu_);

  mutable absl::Mutex mu_;
  Version version_ ABSL_GUARDED_BY(mu_);
  int64_t goes_on_at_ ABSL_GUARDED_BY(mu_) = 0;
  // The step of the values that were pulled last.
  int64_t pulled_ ABSL_GUARDED_BY(mu_) = kNone;
  std::optional<HeldAt> held_ ABSL_GUARDED_BY(mu_);
  bool ends_steps_that_stay_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status ended_ ABSL_GUARDED_BY(mu_);
};

}  // namespace parasol

#endif  // PARASOL_WORKER_GROUP_GROUP_STATE_H_
