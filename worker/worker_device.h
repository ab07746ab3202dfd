#ifndef PARASOL_WORKER_WORKER_DEVICE_H_
#define PARASOL_WORKER_WORKER_DEVICE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "ml/device/device.h"
#include "ml/input/input_pipeline.h"
#include "ml/model/graph.h"
#include "ml/model/model.h"
#include "parameters/training_parameters.h"
#include "proto/job.pb.h"
#include "worker/step/replica_source.h"
#include "worker/store/local_steps_model.h"
#include "worker/sync_training_loop.h"
#include "worker/training_report.h"
#include "worker/worker_metrics.h"

namespace parasol {

// Opens the device on which a worker computes. `name` and `threads` come from
// the command line and are for Device::Open(); the precision and the use of
// CUDA graphs, which is the default, come from `settings`. Errors as for
// Device::Open().
absl::StatusOr<std::unique_ptr<Device>> OpenDevice(
    absl::string_view name, int threads, const job::WorkerSettings& settings);

// A device of a worker of a cluster, and the model that computes on it.
struct WorkerDevice {
  std::unique_ptr<Device> device;
  std::unique_ptr<Model> model;
};

// Opens the devices of a worker of a cluster and creates the model of each, in
// the order of ResolveWorkerDevices(). `flag` is --device, `threads` the number
// of CPU threads of each. Returns errors of ResolveWorkerDevices(),
// Device::Open(), Model::Create() and ForTraining().
absl::StatusOr<std::vector<WorkerDevice>> OpenWorkerDevices(
    const job::Job& job, const Graph& graph, absl::string_view flag,
    int threads, LocalStepsOptions local = {});

// Returns `model` as the job's training runs it on `device`: in micro-batches,
// with clipped gradients, in local steps. Borrows `device`. Returns errors of
// TakeLocalSteps().
absl::StatusOr<std::unique_ptr<Model>> ForTraining(
    std::unique_ptr<Model> model, Device& device, const job::Job& job,
    LocalStepsOptions local = {});

// Returns the devices' names for the log.
std::string DescribeDevices(const std::vector<WorkerDevice>& devices);

// Lowers the priority of the calling thread, as the job says, if it is one that
// computes: a thread that feeds another device computes nothing itself.
void LowerPriorityFor(const WorkerDevice& device, const job::Job& job);

// Runs the loop of synchronous training for the replicas that `replicas` gives
// this worker, on all devices at the same time. `examples` is the training set.
// Sets what the job says in `options`. All references must outlive the call.
// Returns errors of SyncTrainingLoop::Run().
absl::Status TrainReplicas(SyncTrainingLoop::Options options,
                           const job::Job& job,
                           const std::vector<WorkerDevice>& devices,
                           const InputPipeline& examples,
                           TrainingParameters& parameters,
                           ReplicaSource& replicas, Clock& clock,
                           WorkerMetrics& metrics, TrainingReporter& reporter);

}  // namespace parasol

#endif  // PARASOL_WORKER_WORKER_DEVICE_H_
