#ifndef PARASOL_WORKER_REPLICA_THREADS_H_
#define PARASOL_WORKER_REPLICA_THREADS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "ml/device/device.h"
#include "ml/input/input_pipeline.h"
#include "ml/model/graph.h"
#include "ml/model/model.h"
#include "parameters/composition.h"
#include "parameters/device_parts.h"
#include "parameters/training_parameters.h"
#include "proto/job.pb.h"
#include "worker/replica_input.h"
#include "worker/store/mirrored_variables.h"
#include "worker/store/parameter_store.h"
#include "worker/store/planned_sums.h"
#include "worker/store/stored_variables.h"
#include "worker/training_report.h"
#include "worker/worker_metrics.h"

namespace parasol {

// The replicas of a job in one process, each with a device, a model and a
// thread of its own. They train in step, as the workers of synchronous training
// do, with the same loop (SyncTrainingLoop): a step's gradients depend on
// (step, replica) alone.
class ReplicaThreads {
 public:
  struct Options {
    job::Job job;  // batch_size: a replica's
    Graph graph;
    std::vector<std::string> devices;  // one for each replica
    int threads = 1;                   // CPU threads of each replica
  };

  // Opens the devices. `input` is the training set; all references must outlive
  // this object. A line in the log says why variables and sums are not in the
  // memory of CUDA devices.
  // Returns errors of Device::Open(), Model::Create(),
  // MirroredVariables::Create(), MakeAllReducePlanner() and
  // PlannedSums::Create().
  static absl::StatusOr<std::unique_ptr<ReplicaThreads>> Create(
      Options options, const InputPipeline& input, Clock& clock,
      WorkerMetrics& metrics);

  // Trains from `first_step`, the number of steps done, until `is_over`, given
  // the number of completed steps, says that there are no more. After an error
  // `parameters` may have had a part of a step. Fails as
  // SyncTrainingLoop::Run() does.
  absl::Status Train(int64_t first_step, std::function<bool(int64_t)> is_over,
                     ParameterStore& parameters, TrainingReporter& reporter);

  // Returns the variables that the devices have; null if they are in host
  // memory, where the `parameters` of Train() have them.
  StoredVariables* variables() {
    return mirrored_ == nullptr ? nullptr : &mirrored_->variables();
  }
  // Makes variables() anew, without initial values, with the optimizers of
  // `job`. Returns errors of MirroredVariables::Create().
  absl::Status UseOptimizers(const job::Job& job);

  const Composition& composition() const { return composition_; }
  // Returns the replicas' models, for evaluation between calls of Train().
  std::vector<Model*> models() const;
  // Returns the devices, and who sums gradients, for logs.
  std::string Describe() const;

 private:
  struct Replica {
    std::unique_ptr<Device> device;
    std::unique_ptr<Model> model;
    std::unique_ptr<ReplicaInput> input;
  };

  ReplicaThreads(Options options, Clock& clock, WorkerMetrics& metrics)
      : options_(std::move(options)), clock_(clock), metrics_(metrics) {}

  // Makes the sums of the user's all-reduce, if the job has one.
  absl::Status MakeSums();
  absl::Status AddReplica(const std::string& device,
                          const InputPipeline& input);
  // Chooses where variables and sums are.
  void ChooseComposition();
  // Makes the devices' variables.
  absl::Status MakeMirrored();
  // Has the replicas' models take variables from host memory.
  absl::Status TakeToHost();
  // The replicas' parameters of one Train().
  struct Shared {
    std::unique_ptr<TrainingParameters> parameters;
    DeviceParts* parts = nullptr;  // null: gradients are pushed
  };
  Shared NewShared(int64_t first_step, ParameterStore& parameters);

  const Options options_;
  Clock& clock_;
  WorkerMetrics& metrics_;
  std::vector<Replica> replicas_;
  Composition composition_;
  std::unique_ptr<MirroredVariables> mirrored_;  // null: in host memory
  std::unique_ptr<PlannedSums> planned_;         // null: no planner
};

}  // namespace parasol

#endif  // PARASOL_WORKER_REPLICA_THREADS_H_
