#ifndef PARASOL_WORKER_SYNC_TRAINING_LOOP_H_
#define PARASOL_WORKER_SYNC_TRAINING_LOOP_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "cluster/client/parameter_client.h"
#include "ml/model/model.h"
#include "proto/job.pb.h"
#include "worker/replica_input.h"
#include "worker/replica_source.h"
#include "worker/training_record.h"
#include "worker/training_report.h"
#include "worker/worker_metrics.h"

namespace parasol {

// A worker's loop in synchronous training: pull the values of a step, and the
// rows of sparse tables that its replicas' batches read; compute the gradients
// of the replicas that are this worker's, push them, and wait until the step is
// complete, whose share whoever computes. A replica that is assigned meanwhile,
// because its worker was lost, is computed from the same values. What a step
// adds up to depends on (step, replica) alone, so not on which worker did what,
// or when: to the last bit on CPUs of one kind with the same --threads. A CUDA
// device sums the gradients of rows in no fixed order, and a process chooses
// cuDNN's algorithms for itself. For one thread.
//
// One exception: a shard's table that has completed the step before a replica's
// rows are pulled from it. It takes a backup that is late, or a worker that was
// lost between two of its pushes. Those rows are then a step newer; it is
// logged.
class SyncTrainingLoop {
 public:
  struct Options {
    job::WorkerSettings::NonFiniteLoss non_finite_loss =
        job::WorkerSettings::STOP;
    // What is random in a pass: see PassSeed().
    uint64_t seed = 0;
    // A step, or a pull, that takes longer ends the loop.
    absl::Duration step_timeout = absl::Minutes(5);
  };

  // All must outlive the loop. The model's variables and tables are the
  // client's, in the same order. After an error, and after Stop() of
  // `replicas`, the client has been stopped.
  SyncTrainingLoop(const Options& options, Model& model, ReplicaInput& input,
                   ParameterClient& parameters, ReplicaSource& replicas,
                   Clock& clock, WorkerMetrics& metrics,
                   TrainingReporter& reporter);

  // Trains until there are no more steps. Errors are those of the input, the
  // model, the parameters and the replicas, and
  //   OutOfRange   the loss is not finite and the job says to stop.
  //   Unavailable  a step was not complete in step_timeout: names it.
  absl::Status Run();

 private:
  // One replica's gradients, sent from here.
  struct Sent {
    int replica = 0;
    std::unique_ptr<ParameterClient::Pending> push;
  };
  // Kept from step to step: the memory is used again.
  struct Gradients {
    struct Rows {
      std::vector<uint64_t> ids;
      std::vector<float> values;
    };
    std::vector<std::vector<float>> variables;
    std::vector<Rows> tables;
  };
  // A replica whose batch is staged, and whose rows are on their way.
  struct Staged {
    int replica = 0;
    std::unique_ptr<StagedBatch> batch;
    std::unique_ptr<ParameterClient::Pending> rows;  // or nullptr: none
  };

  absl::Status RunSteps();
  absl::StatusOr<int64_t> PullValues(int64_t min_step);
  absl::Status RunStep(int64_t step, ReplicaShare share);
  absl::Status ComputeAll(int64_t step, const std::vector<int>& replicas);
  absl::Status Stage(int64_t step, int replica, Staged& staged);
  absl::Status FinishRows(int64_t step, Staged& staged);
  absl::Status Compute(int64_t step, Staged& staged);
  void Push(int64_t step, int replica, ParameterClient::PushRequest request);
  absl::StatusOr<bool> AwaitPushes(int64_t step, ReplicaShare& share);
  absl::Status AwaitPull(ParameterClient::Pending& pull, int64_t step);
  absl::Status CheckWait(int64_t step, absl::Time start) const;
  absl::Status FinishStep(int64_t step);
  void Abandon();

  const Options options_;
  Model& model_;
  ReplicaInput& input_;
  ParameterClient& parameters_;
  ReplicaSource& replicas_;
  Clock& clock_;
  WorkerMetrics& metrics_;
  TrainingRecord record_;

  // The replica that computes and the next one.
  std::array<Staged, 2> staged_;
  std::map<int, Gradients> gradients_;  // by replica
  // Of the step that is being done, first to last.
  std::vector<Sent> sent_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_SYNC_TRAINING_LOOP_H_
