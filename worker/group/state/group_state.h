#ifndef PARASOL_WORKER_GROUP_STATE_GROUP_STATE_H_
#define PARASOL_WORKER_GROUP_STATE_GROUP_STATE_H_

#include <atomic>
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
#include "base/clock.h"
#include "ml/layer/variable_spec.h"
#include "parameters/composition.h"
#include "parameters/training_parameters.h"
#include "proto/checkpoint.pb.h"
#include "proto/job.pb.h"
#include "worker/group/state/state_steps.h"
#include "worker/store/parameter_store.h"

namespace parasol {

// The variables, slots and tables that one member of a group has, and the steps
// that they have had. All members have the same. A worker begins without any:
// it loads them, or takes a peer's. A state has no tables where ps have them.
//
// Invariant: all of them have had the same whole steps. Thread-safe.
class GroupState {
 public:
  using Version = StateVersion;

  // `clock` must outlive the state. The state has the job's tables if `rows`
  // are here. `elsewhere`, which is borrowed: where the variables lie,
  // MakeStep() updates them and other threads may use them meanwhile, and then
  // there are no tables; null: they are the state's own.
  GroupState(std::vector<VariableSpec> variables, job::Job job, Clock& clock,
             TableStore rows = TableStore::kHost,
             StoredVariables* elsewhere = nullptr);
  // The variables that `like` has, which must outlive the state, with its
  // optimizers: StoreLike().
  GroupState(ParameterStore& like, Clock& clock);

  const std::vector<VariableSpec>& variables() const { return variables_; }
  const job::Job& job() const { return job_; }
  // Number of tables that the state has.
  int num_tables() const;

  // Returns variables with their initial values, which are no part of the state
  // yet: for Replace(). Returns errors of ParameterStore::Create().
  absl::StatusOr<std::unique_ptr<ParameterStore>> MakeParameters() const;
  // Makes `parameters` the state, unless it is at `version` or later. Ends this
  // state, with Unavailable, if others than its values of that step were
  // pulled: gradients may be of these; and if the variables cannot be taken
  // over, with the error of that.
  void Replace(std::unique_ptr<ParameterStore> parameters,
               const Version& version) ABSL_LOCKS_EXCLUDED(data_mu_);
  // Makes `parameters`, loaded ones, the state if there is none yet: another
  // one, a peer's, may belong to a group which makes steps.
  void Load(std::unique_ptr<ParameterStore> parameters, int64_t step)
      ABSL_LOCKS_EXCLUDED(data_mu_);

  // The steps that the state has had. Its version is set by this class alone.
  StateSteps& steps() { return steps_; }
  Version version() const { return steps_.version(); }

  // Notes that a state which was loaded goes on, without updates, at `step` if
  // it is behind that: ps have the cluster's tables of that step, and no worker
  // the variables.
  void SetGoesOnAt(int64_t step) { goes_on_at_ = step; }
  int64_t goes_on_at() const { return goes_on_at_; }
  // Counts the state as a loaded one of `step` if it is behind that, with a
  // warning: the updates in between are lost.
  void GoOnAt(int64_t step) ABSL_LOCKS_EXCLUDED(data_mu_);

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
      ABSL_LOCKS_EXCLUDED(data_mu_);

  // Calls `read` with the state, which does not change meanwhile: also the
  // tables' rows that are there may be read.
  //   FailedPrecondition  there is no state yet.
  absl::Status Read(
      absl::FunctionRef<absl::Status(ParameterStore& parameters)> read)
      ABSL_LOCKS_EXCLUDED(data_mu_);

  // Waits until the state has had `step` steps, if given, returns a copy of it,
  // and ends the hold: steps are made while the copy is written. With `stays`
  // none is made until StateSteps::GoOn(). Polls `is_cancelled`.
  //   Aborted             it has had more steps.
  //   Cancelled           `is_cancelled` returned true.
  //   FailedPrecondition  there is no state yet.
  absl::StatusOr<StoreSnapshot> TakeSnapshot(
      std::optional<int64_t> step, const std::function<bool()>& is_cancelled,
      bool stays = false) ABSL_LOCKS_EXCLUDED(data_mu_);

 private:
  // A lock of data_mu_ to read: exclusive where the variables are elsewhere,
  // which one thread at a time may read.
  class ReadLock;

  // Takes `parameters` as its own, or copies them elsewhere.
  //   any error  of StoredVariables; there is no state then.
  absl::Status Take(std::unique_ptr<ParameterStore> parameters)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(data_mu_);
  absl::Status CopyElsewhere(ParameterStore& from)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(data_mu_);
  // Returns a copy of the state. Errors are Aborted and FailedPrecondition of
  // TakeSnapshot().
  absl::StatusOr<StoreSnapshot> CopyAt(std::optional<int64_t> step)
      ABSL_SHARED_LOCKS_REQUIRED(data_mu_);

  const std::vector<VariableSpec> variables_;
  const job::Job job_;
  const TableStore rows_;
  StoredVariables* const elsewhere_;            // null: in `parameters_`
  const ParameterStore* const like_ = nullptr;  // null: as the job says

  // Held shared to read the parameters, exclusively to change them.
  absl::Mutex data_mu_;
  std::unique_ptr<ParameterStore> parameters_ ABSL_GUARDED_BY(data_mu_);
  StateSteps steps_;
  std::atomic<int64_t> goes_on_at_ = 0;
};

// Writes a copy of the state, taken as by TakeSnapshot(), to the file at
// `path`, a checkpoint's only one. Returns errors of TakeSnapshot() and
// ShardWriter.
absl::StatusOr<durable::CheckpointFile> SaveState(
    GroupState& state, std::optional<int64_t> step, const std::string& path,
    const std::function<bool()>& is_cancelled, bool stays = false);

}  // namespace parasol

#endif  // PARASOL_WORKER_GROUP_STATE_GROUP_STATE_H_
