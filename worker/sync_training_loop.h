#ifndef PARASOL_WORKER_SYNC_TRAINING_LOOP_H_
#define PARASOL_WORKER_SYNC_TRAINING_LOOP_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "base/parallel_calls.h"
#include "cluster/progress/curve_points.h"
#include "ml/model/model.h"
#include "parameters/device_parts.h"
#include "parameters/training_parameters.h"
#include "proto/job.pb.h"
#include "worker/replica_input.h"
#include "worker/replica_passes.h"
#include "worker/step/replica_source.h"
#include "worker/training_record.h"
#include "worker/training_report.h"
#include "worker/worker_metrics.h"

namespace parasol {

// A worker's loop in synchronous training. In each step it pulls the variables'
// values, and the rows of sparse tables that its replicas' batches read. It
// then computes and pushes the gradients of its replicas, and waits until the
// step is complete, whichever workers compute the other replicas. At the end of
// an epoch replicas may have batches of different sizes: their gradients are
// weighted by ReplicaInput, so the mean is that over the step's examples. A
// replica that is assigned during a step, because its worker was lost, is
// computed from the same values. Must be used from one thread.
//
// A worker may have several devices, which compute at the same time, each on a
// thread of its own. Replica i of those that are to be computed goes to device
// i modulo their number: after a loss a device may have several, in turn.
//
// A step's gradients depend on (step, replica) alone, not on the worker that
// computes them or on timing. They are equal to the last bit on CPUs of one
// kind with the same --threads. On a CUDA device they may differ: it sums the
// gradients of rows in no fixed order, and each process chooses cuDNN's
// algorithms for itself.
//
// A model with fragments has a pass in each step for each of them. The values
// of a fragment are pulled when all replicas have pushed it, and the next pass
// begins with them. A replica that is assigned behind some passes begins, with
// the values that the worker has, at the pass that the others make: the ones
// before are complete.
//
// A worker may be lost when its gradients of a step have come to some chunks
// and tables and not to others. The ones that have completed it keep the
// step's values until no one needs them (Chunk), so the worker that takes over
// the replica, even one that has just started, computes the same gradients
// again. One exception: rows of a table whose optimizer touches all rows in
// each update (Adam's, not LazyAdam's) may then be a step newer.
class SyncTrainingLoop {
 public:
  struct Options {
    job::WorkerSettings::NonFiniteLoss non_finite_loss =
        job::WorkerSettings::STOP;
    // Seed of everything random in a pass: see PassSeed().
    uint64_t seed = 0;
    // Longest time that a step or a pull may take; the loop then ends.
    absl::Duration step_timeout = absl::Minutes(5);
    // Time for which a worker that was told to stop still waits for its pushes.
    // A ps may have made the step's update with the last of them: one that has
    // not, lacks it, and no checkpoint can be cut.
    absl::Duration last_push_limit = absl::ZeroDuration();
    // Points between which losses are told apart, if they are known.
    CurvePoints points = {};
    // False where another loop of this process counts the same steps and
    // corrupt records.
    bool counts_steps = true;
    // Told of each pass if the models' gradients of variables stay in the
    // memory of their devices, where `parameters` has them; null: they are
    // pushed. Must outlive the loop.
    DeviceParts* parts = nullptr;
    // True if the models' variables stay there, too, and `parameters` updates
    // them: no values are pulled.
    bool values_stay_on_device = false;
    // True if a pull may wait for a step that is not complete.
    bool pulls_ahead = false;
    // Called once on the thread of each device, with its number.
    std::function<void(size_t device)> on_thread = [](size_t) {};
  };
  // The model of a device, and the reader of its replicas.
  struct Place {
    Model* model;
    ReplicaInput* input;
  };

  // All references must outlive the loop. The variables and tables of `model`
  // and `parameters` are the same, in the same order. After an error, and after
  // Stop() of `replicas`, `parameters` has been stopped.
  SyncTrainingLoop(const Options& options, Model& model, ReplicaInput& input,
                   TrainingParameters& parameters, ReplicaSource& replicas,
                   Clock& clock, WorkerMetrics& metrics,
                   TrainingReporter& reporter);
  // Makes a loop on several devices, at least one, with equal models.
  SyncTrainingLoop(const Options& options, const std::vector<Place>& places,
                   TrainingParameters& parameters, ReplicaSource& replicas,
                   Clock& clock, WorkerMetrics& metrics,
                   TrainingReporter& reporter);

  // Trains until there are no more steps. Returns errors of the input, the
  // model, the parameters and the replicas, and
  //   OutOfRange   the loss is not finite and the job says to stop.
  //   Unavailable  a step was not complete within step_timeout; the message
  //                names it and the tasks that it waited for.
  absl::Status Run();

 private:
  TrainingRecord& record() { return passes_.front()->record(); }
  absl::Status RunSteps();
  // Pulls the values of one step, at least `min_step`, and returns which. All
  // steps before it are complete everywhere.
  absl::StatusOr<int64_t> PullValues(int64_t min_step);
  absl::StatusOr<int64_t> Pull(const std::vector<size_t>& variables,
                               int64_t min_step);
  // Gives the model a fragment's values behind the step's update.
  absl::Status TakeFragment(int64_t step, size_t fragment);
  absl::StatusOr<std::optional<ReplicaShare>> AwaitShare();
  absl::Status RunStep(int64_t step, ReplicaShare share);
  // Makes a pass for all replicas of `share`, which may become another one.
  absl::Status RunPass(int64_t step, size_t pass, ReplicaShare& share);
  // Calls `call` for all devices at the same time, and returns the cause of
  // what has failed, if any.
  absl::Status OnAllDevices(const ParallelCalls::Call& call);
  absl::StatusOr<bool> AwaitPass(int64_t step, ReplicaShare& share);
  // Looks for what ends a wait for the pushes of a step: an error, another
  // share, which `share` then is, or a shard that came in place of another, to
  // which all is pushed again.
  enum class Found { kNothing, kShare, kMove };
  absl::StatusOr<Found> LookAround(int64_t step, absl::Time start,
                                   ReplicaShare& share);
  void PushAgain(int64_t step);
  // Called by the threads of all devices, as is CheckWait().
  absl::Status AwaitPull(TrainingParameters::Pending& pull, int64_t step,
                         TrainingRecord& record);
  // Ends a wait for too long, and names whom it is for in the log.
  absl::Status CheckWait(int64_t step, absl::Time start, bool has_pushed);
  // Returns true if `fault`, the end of a wait for pushes, comes from a worker
  // that was told to stop, and the limit for the last ones has not passed.
  bool MayAwaitLastPushes(const absl::Status& fault);
  absl::Status FinishStep(int64_t step);
  void Abandon();

  const Options options_;
  Model& model_;  // the first device's
  TrainingParameters& parameters_;
  ReplicaSource& replicas_;
  Clock& clock_;
  WorkerMetrics& metrics_;
  TrainingReporter& reporter_;
  const std::vector<std::vector<size_t>> fragments_;  // the model's
  bool has_values_ = false;  // true once the model has had all variables
  // Number of updates that the values of all fragments have had, while no step
  // is under way; -1: they have had different ones, or there are none.
  int64_t values_step_ = -1;
  // The first model's values, which the others take; index: variable.
  std::vector<absl::Span<const float>> values_;

  // Reports of the devices after the first one, until the step is complete.
  std::deque<TrainingReporter> of_others_;
  std::vector<std::unique_ptr<ReplicaPasses>> passes_;  // index: device
  std::unique_ptr<ParallelCalls> threads_;              // null: not running
  // TrainingParameters::Awaited::moves since which the step's pushes were sent.
  int64_t pushed_moves_ = 0;
  // The time at which it was found to be told to stop.
  absl::Time stopped_at_ = absl::InfiniteFuture();
  // True if the job was complete while a step was not.
  std::atomic<bool> is_over_ = false;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_SYNC_TRAINING_LOOP_H_
