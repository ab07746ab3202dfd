#ifndef PARASOL_WORKER_STORE_REPLICA_PARAMETERS_H_
#define PARASOL_WORKER_STORE_REPLICA_PARAMETERS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
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
#include "cluster/replica_sum/row_accumulator.h"
#include "parameters/training_parameters.h"
#include "worker/store/parameter_store.h"
#include "worker/store/planned_sums.h"

namespace parasol {

// The parameters of a process whose replicas train in step, each on a thread of
// its own: what the ps are to synchronous training. A push is one replica's
// part of a step. When all replicas have pushed a variable, their gradients are
// added in ascending order of the replicas, straight from where they lie, and
// the mean is applied as one update: the bits that ps would have. (A planner
// may add in another order: Options::planned.) The threads that wait for a step
// share this work, block by block, or variable by variable under an optimizer
// that needs whole ones.
//
// Rows of a table are divided by the number of replicas that touch them.
//
// A replica pulls the values of a step only after its pushes of the step before
// it have completed, as SyncTrainingLoop does. So no update is under way while
// values are copied. Thread-safe; a push is waited for by the thread of its
// replica.
class ReplicaParameters : public TrainingParameters {
 public:
  struct Options {
    int replicas = 1;
    // Number of steps that have been done.
    int64_t first_step = 0;
    // True if replica 0's thread alone adds and applies.
    bool sums_on_one_device = false;
    // How variables' gradients are added, if not in ascending order of the
    // replicas; outlives the object. Null: in that order.
    PlannedSums* planned = nullptr;
    // The replicas' devices, for messages.
    std::vector<std::string> devices = {};
  };

  // `parameters` must outlive this object, and is used by nobody else
  // meanwhile.
  ReplicaParameters(ParameterStore& parameters, Options options);

  using TrainingParameters::Pull;
  using TrainingParameters::Push;
  // The outcome has the number of the step that the values are of.
  std::unique_ptr<Pending> Pull(PullRequest request) override
      ABSL_LOCKS_EXCLUDED(mu_);
  // Requires that `request.sync` is set, and that each replica pushes each
  // variable and table once per step.
  //   Cancelled  Stop() was called.
  std::unique_ptr<Pending> Push(PushRequest request) override
      ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the replicas whose gradients others wait for: "replica/1 (cpu:1)".
  Awaited Unanswered() const override ABSL_LOCKS_EXCLUDED(mu_);
  void Stop() override ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // A replica's push, until its variables and tables have had their updates.
  struct StepPush {
    int replica = 0;
    size_t left = 0;  // number of variables and tables without their update
    absl::Status status = absl::OkStatus();
  };
  class PendingPush;

  // A variable in the current step.
  struct Variable {
    int64_t step = 0;
    // The gradients that have come; data() is null for the others.
    std::vector<absl::Span<const float>> gradients = {};
    size_t collected = 0;
    size_t blocks_left = 0;
    std::vector<std::shared_ptr<StepPush>> pushes = {};
  };
  struct Table {
    int64_t step = 0;
    std::unique_ptr<RowAccumulator> sums;
    std::vector<std::optional<RowGradient>> gradients = {};
    size_t collected = 0;
    std::vector<std::shared_ptr<StepPush>> pushes = {};
  };
  // Work on a variable or table that all replicas have pushed.
  struct Task {
    size_t index = 0;
    bool is_table = false;
    // The elements of a variable.
    size_t first = 0;
    size_t count = 0;
  };

  void Take(int replica, const Gradient& gradient,
            const std::shared_ptr<StepPush>& push)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Take(int replica, const RowGradient& rows,
            const std::shared_ptr<StepPush>& push)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns true if the thread of `replica` may do the next task.
  bool HasTaskFor(int replica) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Does the next task, without the lock.
  void RunTask(int replica) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  //   InvalidArgument  a plan of `planned` is wrong.
  absl::Status ApplyMean(int replica, const Task& task,
                         absl::Span<const absl::Span<const float>> gradients);
  absl::Status ApplyMeans(
      size_t table, RowAccumulator& sums,
      absl::Span<const std::optional<RowGradient>> gradients);
  // Notes that a task has been done.
  void Finish(const Task& task, const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns the result of a push; nullopt if there is none yet. After Stop()
  // there is one when no thread reads gradients any more.
  std::optional<absl::Status> ResultOf(const StepPush& push) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Works, or waits, until `push` has a result or `limit` has passed without
  // work.
  std::optional<absl::Status> Await(const StepPush& push, absl::Duration limit)
      ABSL_LOCKS_EXCLUDED(mu_);

  ParameterStore& parameters_;
  const Options options_;
  // Each replica's memory for the sum of a task; used by its thread.
  std::vector<std::vector<float>> sums_;
  // And what plans work in.
  std::vector<std::vector<float>> workspaces_;

  mutable absl::Mutex mu_;
  std::vector<Variable> variables_ ABSL_GUARDED_BY(mu_);
  std::vector<Table> tables_ ABSL_GUARDED_BY(mu_);
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mu_);
  int running_ ABSL_GUARDED_BY(mu_) = 0;  // tasks that are being done
  absl::Status stopped_ ABSL_GUARDED_BY(mu_);
};

}  // namespace parasol

#endif  // PARASOL_WORKER_STORE_REPLICA_PARAMETERS_H_
