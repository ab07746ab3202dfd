#include "worker/worker_device.h"

#include <deque>
#include <utility>

#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/thread_priority.h"
#include "cluster/job/strategy.h"
#include "worker/replica_input.h"
#include "worker/store/clipped_model.h"
#include "worker/store/micro_batch_model.h"

namespace parasol {
namespace {

Precision PrecisionOf(const job::WorkerSettings& settings) {
  switch (settings.precision()) {
    case job::WorkerSettings::FLOAT32:
      return Precision::kFloat32;
    case job::WorkerSettings::TF32:
      return Precision::kTf32;
    case job::WorkerSettings::BFLOAT16:
      return Precision::kBfloat16;
  }
  return Precision::kFloat32;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> OpenDevice(
    absl::string_view name, int threads, const job::WorkerSettings& settings) {
  return Device::Open(name, {.threads = threads,
                             .precision = PrecisionOf(settings),
                             .cuda_graphs = !settings.has_cuda_graphs() ||
                                            settings.cuda_graphs()});
}

absl::StatusOr<std::vector<WorkerDevice>> OpenWorkerDevices(
    const job::Job& job, const Graph& graph, absl::string_view flag,
    int threads, LocalStepsOptions local) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names,
                   ResolveWorkerDevices(job, flag));
  std::vector<WorkerDevice> devices;
  for (const std::string& name : names) {
    WorkerDevice& opened = devices.emplace_back();
    ASSIGN_OR_RETURN(opened.device, OpenDevice(name, threads, job.worker()));
    ASSIGN_OR_RETURN(std::unique_ptr<Model> model,
                     Model::Create(graph, *opened.device));
    ASSIGN_OR_RETURN(opened.model,
                     ForTraining(std::move(model), *opened.device, job, local));
  }
  return devices;
}

absl::StatusOr<std::unique_ptr<Model>> ForTraining(std::unique_ptr<Model> model,
                                                   Device& device,
                                                   const job::Job& job,
                                                   LocalStepsOptions local) {
  const job::Job of_pass = JobOfLocalSteps(job);
  model =
      ClipGradients(SplitBatches(std::move(model), device, of_pass), of_pass);
  return TakeLocalSteps(std::move(model), job, std::move(local));
}

std::string DescribeDevices(const std::vector<WorkerDevice>& devices) {
  return absl::StrJoin(devices, ", ",
                       [](std::string* out, const WorkerDevice& opened) {
                         out->append(opened.device->name());
                       });
}

void LowerPriorityFor(const WorkerDevice& device, const job::Job& job) {
  if (device.device->kind() != Device::Kind::kCpu) return;
  LowerThreadPriority(job.worker().compute_niceness());
}

absl::Status TrainReplicas(SyncTrainingLoop::Options options,
                           const job::Job& job,
                           const std::vector<WorkerDevice>& devices,
                           const InputPipeline& examples,
                           TrainingParameters& parameters,
                           ReplicaSource& replicas, Clock& clock,
                           WorkerMetrics& metrics, TrainingReporter& reporter) {
  options.non_finite_loss = job.worker().non_finite_loss();
  options.seed = job.seed();
  options.on_thread = [&](size_t device) {
    LowerPriorityFor(devices[device], job);
  };
  const ReplicaInput::Options input = {
      .seed = job.seed(),
      .total_replicas = job.parameter_server().synchronous().total_replicas(),
      .batch_size = job.train().batch_size()};
  std::deque<ReplicaInput> inputs;
  std::vector<SyncTrainingLoop::Place> places;
  for (const WorkerDevice& device : devices) {
    inputs.emplace_back(examples, input);
    places.push_back({device.model.get(), &inputs.back()});
  }
  return SyncTrainingLoop(options, places, parameters, replicas, clock, metrics,
                          reporter)
      .Run();
}

}  // namespace parasol
