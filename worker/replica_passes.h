#ifndef PARASOL_WORKER_REPLICA_PASSES_H_
#define PARASOL_WORKER_REPLICA_PASSES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "cluster/progress/curve_points.h"
#include "ml/model/model.h"
#include "parameters/device_parts.h"
#include "parameters/training_parameters.h"
#include "proto/job.pb.h"
#include "worker/replica_input.h"
#include "worker/training_record.h"
#include "worker/training_report.h"
#include "worker/worker_metrics.h"

namespace parasol {

// The passes of a SyncTrainingLoop on one device: replicas' gradients, one
// after the other, and their pushes. Used by one thread at a time.
class ReplicaPasses {
 public:
  struct Options {
    job::WorkerSettings::NonFiniteLoss non_finite_loss =
        job::WorkerSettings::STOP;
    // Seed of everything random in a pass: see PassSeed().
    uint64_t seed = 0;
    // Points between which losses are told apart, if they are known.
    CurvePoints points = {};
    // True where corrupt records are counted: once in a process.
    bool counts_records = true;
    // Told of each pass if gradients of variables stay on the device, which is
    // the worker's `device`-th one (DevicePart); null: they are pushed.
    DeviceParts* parts = nullptr;
    int device = 0;
    // True if a pull may wait for a step that is not complete: a fragment's
    // next values are then pulled behind its first push.
    bool pulls_ahead = false;
  };
  // Waits for a pull of values of a step, and records how.
  using AwaitPull = std::function<absl::Status(
      TrainingParameters::Pending& pull, int64_t step, TrainingRecord& record)>;
  // The push of one replica's gradients.
  struct Sent {
    int replica = 0;
    std::unique_ptr<TrainingParameters::Pending> push;
  };

  // All references must outlive this object.
  ReplicaPasses(const Options& options, Model& model, ReplicaInput& input,
                TrainingParameters& parameters, AwaitPull await_pull,
                Clock& clock, WorkerMetrics& metrics,
                TrainingReporter& reporter);

  Model& model() { return model_; }
  TrainingRecord& record() { return record_; }

  // Gives the model `values` of each variable; frozen ones once. Returns errors
  // of Model::Upload().
  absl::Status TakeValues(const std::vector<absl::Span<const float>>& values);

  // Begins a step, in which the device has `replicas` as far as is known, and
  // forgets the gradients of others.
  void BeginStep(const std::vector<int>& replicas);
  // Closes the readers of all other replicas.
  void KeepReaders(const std::vector<int>& replicas);
  // Computes and pushes the gradients of `replicas` of one of the step's passes
  // (Model::fragments()), from the values that the model has. Returns errors of
  // the input, the model and AwaitPull, and
  //   OutOfRange  the loss is not finite and the job says to stop.
  absl::Status ComputeAll(int64_t step, size_t pass,
                          const std::vector<int>& replicas);
  // Pushes again what the step's replicas have pushed.
  void PushAgain(int64_t step);

  // Returns the pull of the values that the pass's fragment has behind the
  // step's update, and starts it if there is none.
  TrainingParameters::Pending& PullOfFragment(int64_t step);
  // Gives the model these values, once they are there. Returns errors of the
  // pull and of Model::Upload(), and the number of updates that they have had.
  absl::StatusOr<int64_t> TakeFragment();

  // The pushes of the step, in the order in which they were sent. The loop
  // removes them when it has waited for them.
  std::vector<Sent>& sent() { return sent_; }
  // Waits for all that reads or writes this object's memory, after the
  // parameters were stopped.
  void Abandon();

 private:
  // Gradients of one replica. Kept from step to step so that the memory is used
  // again.
  struct Gradients {
    struct Rows {
      std::vector<uint64_t> ids;
      std::vector<float> values;
      std::vector<uint32_t> counts;
    };
    // Empty: not pushed in this step.
    std::vector<std::vector<float>> variables;
    std::vector<Rows> tables;
  };
  // A replica whose batch is staged and whose rows are being pulled.
  struct Staged {
    int replica = 0;
    bool has_examples = false;
    float weight = 1;  // ReplicaInput::Share::weight
    std::unique_ptr<StagedBatch> batch;
    std::unique_ptr<TrainingParameters::Pending> rows;  // nullptr: no rows
  };
  // The examples of a replica in this step, and what its passes so far have
  // returned.
  struct Progress {
    ReplicaInput::Share share;
    BatchResult result = {};
  };

  bool is_last_pass() const { return pass_ + 1 >= fragments_.size(); }
  // Returns the variables of the pass.
  std::vector<size_t> VariablesOfPass() const;
  absl::Status Stage(int64_t step, int replica, Staged& staged);
  absl::StatusOr<ReplicaInput::Share> ShareOf(int64_t step, int replica);
  absl::Status FinishRows(int64_t step, Staged& staged);
  absl::Status Compute(int64_t step, Staged& staged);
  // Pushes gradients of 0 for a replica whose batch has no examples: the step
  // awaits a push of every replica.
  void PushNothing(int64_t step, const Staged& staged);
  // Says what the next pass computes, if its gradients stay on the device.
  void Expect(int64_t step, const Staged& staged);
  void Push(int64_t step, int replica, TrainingParameters::PushRequest request);
  // Notes that the pass has pushed all of its variables.
  void PullBehind(int64_t step);
  // Pushes differences of 0 of the fragments before this pass's which the
  // replica has not pushed from here: a shard that came in place of another
  // awaits them, if the worker that has pushed them is lost.
  void PushEarlier(int64_t step, int replica);
  // Pushes a replica's part where gradients of variables stay on the device;
  // `rows` are the gradients of all tables.
  void PushPart(int64_t step, const Staged& staged,
                std::vector<TrainingParameters::RowGradient> rows);

  const Options options_;
  Model& model_;
  ReplicaInput& input_;
  TrainingParameters& parameters_;
  const AwaitPull await_pull_;
  Clock& clock_;
  WorkerMetrics& metrics_;
  TrainingRecord record_;
  const std::vector<std::vector<size_t>> fragments_;  // the model's
  bool has_values_ = false;  // true once the model has had all variables
  size_t pass_ = 0;

  // Batches of the replica that is computing and of the next one.
  std::array<Staged, 2> staged_;
  // Index of the batch of a step's first replica.
  size_t first_staged_ = 0;
  std::map<int, Gradients> gradients_;  // key: replica
  // Index: replica of this step, if that has several passes.
  std::map<int, Progress> progress_;
  std::set<int> computed_;  // replicas of this step
  std::vector<Sent> sent_;
  // The pull of the pass's fragment; null: none.
  std::unique_ptr<TrainingParameters::Pending> coming_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_REPLICA_PASSES_H_
