#ifndef PARASOL_WORKER_LONE_CHIEF_H_
#define PARASOL_WORKER_LONE_CHIEF_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "cluster/checkpoint/checkpoint_contents.h"
#include "cluster/checkpoint/evaluation_log.h"
#include "coordinator/coordinator.h"
#include "coordinator/coordinator_options.h"
#include "coordinator/order.h"
#include "coordinator/order_executor.h"
#include "ml/layer/variable_spec.h"
#include "proto/chief.pb.h"
#include "proto/job.pb.h"
#include "storage/checkpoint_store.h"
#include "storage/directory_ownership.h"
#include "worker/step/granted_steps.h"
#include "worker/store/lone_shard.h"
#include "worker/training_report.h"

namespace parasol {

// The chief of a worker without a cluster, in its process: the coordinator of a
// cluster's chief and the executor of its orders. The cluster is this worker,
// which has the only shard, as worker 0 has where workers have the variables.
// There is no thread and no port: the thread that trains calls it
// between two steps, and carries orders out there. So a checkpoint is of the
// step at which it is due, and decisions of evaluations hold from the next step
// on. Must be used from that thread, but for Status().
class LoneChief {
 public:
  struct Options {
    job::Job job;  // defaults are filled in
    std::vector<VariableSpec> variables;
    // The contents of checkpoints; nullopt: as job and variables say.
    std::optional<CheckpointContents> contents = std::nullopt;
    // Time for which the first and the last checkpoint are tried again, and a
    // directory that is full at the start.
    absl::Duration checkpoint_timeout;
    // Returns true when the worker was told to stop; from any thread.
    std::function<bool()> is_stopping;
    // Told what is waited for at the start.
    std::function<void(absl::string_view)> on_trouble;
    // True if End() ends the training: a run that has ended so before the job's
    // end is taken up again.
    bool ends_when_told = false;
  };

  // Takes the job's checkpoint directory and finds with what the run goes on.
  // Fails as TakeRun() does, and with
  //   InvalidArgument  the job's end can't be found in the data.
  static absl::StatusOr<std::unique_ptr<LoneChief>> Start(Options options,
                                                          LoneShard& shard,
                                                          Clock& clock);

  // Notes that the run has had `completed` steps. Call it before the others.
  void Complete(int64_t completed);
  // Takes what the training has done since the last report. Returns the totals
  // of all reports.
  wire::WorkerTotals Report(const TrainingReport& report);
  // Returns the batch of the next step; of replicas in step its number.
  // nullopt: none is to be begun now, as an order comes first, perhaps.
  std::optional<int64_t> StartStep();
  // Returns the batches that StartStep() will probably return next.
  std::vector<int64_t> Upcoming() const;

  // Returns the next order, if there is one. Carry it out and tell its result
  // before asking for another one.
  std::optional<Order> NextOrder();
  // Has the shard load what the order says.
  //   any error  of the shard, which must not go on then.
  absl::Status CarryOut(const LoadOrder& order);
  // Writes a checkpoint, and logs how it went. Tell the result by Done().
  absl::Status Write(const CheckpointOrder& order);
  void Done(const CheckpointOrder& order, const absl::Status& result);
  // Takes all evaluations of the run, in ascending order of their steps, and
  // logs what they have changed.
  void Evaluated(const std::vector<Evaluation>& evaluations);

  // Brings the run's end forward to the steps that are done, at least one.
  void End();
  // Returns how the run ends; nullopt while it goes on.
  //   OK         every step is done, and the last checkpoint written.
  //   Cancelled  the worker was told to stop; a checkpoint has all steps.
  //   any other  as for a cluster's chief, or EndWithoutCheckpoint() for a
  //              checkpoint that a stop left time for once.
  std::optional<absl::Status> Outcome();
  // Waits for a moment: nothing is to be done.
  void Pause();

  // Returns true if the shard has values.
  bool is_loaded() const { return is_loaded_; }
  // Returns the run as it was taken up.
  const CoordinatorOptions& run() const { return run_; }
  const CheckpointStore& store() const { return executor_->store(); }
  // Returns an error if the directory has another owner now.
  absl::Status CheckOwner() const { return ownership_->Check(); }
  // May be called from any thread.
  wire::JobStatus Status() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  LoneChief(Options options, const LoneShard& shard, Clock& clock);

  // Has both tasks of the cluster register, and says how much data there is.
  absl::Status Register(const LoneShard& shard) ABSL_LOCKS_EXCLUDED(mu_);
  // Claims `want` steps, and tells the completed ones. An error ends the run.
  void Claim(int64_t want) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Leave(const wire::Task& task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;
  const bool is_in_step_;
  Clock& clock_;
  CoordinatorOptions run_;
  std::unique_ptr<DirectoryOwnership> ownership_;
  std::unique_ptr<OrderExecutor> executor_;
  wire::Task worker_;
  wire::Task keeper_;  // the ps that the worker is to the coordinator
  wire::ClaimStepsRequest claim_;  // the next one, but for its totals

  int64_t completed_ = 0;  // steps of the run
  GrantedSteps steps_;     // the steps of this process, unless in step
  // The end by the newest claim.
  int64_t end_step_ = 0;
  // The order before which no step is to be begun.
  std::optional<Order> order_;
  bool is_loaded_ = false;
  TrainingReport total_;  // all reports together
  // The error that ends the run, if it is not the coordinator's.
  absl::Status failure_;
  bool stop_requested_ = false;
  mutable absl::Mutex mu_;
  std::optional<Coordinator> coordinator_ ABSL_GUARDED_BY(mu_);
};

}  // namespace parasol

#endif  // PARASOL_WORKER_LONE_CHIEF_H_
