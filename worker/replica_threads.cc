#include "worker/replica_threads.h"

#include <algorithm>
#include <deque>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/log.h"
#include "base/parallel_calls.h"
#include "base/status_macros.h"
#include "cluster/collective/custom/custom_all_reduce.h"
#include "worker/step/shared_steps.h"
#include "worker/store/device_steps.h"
#include "worker/store/replica_model.h"
#include "worker/store/replica_parameters.h"
#include "worker/sync_training_loop.h"
#include "worker/worker_device.h"

namespace parasol {

absl::StatusOr<std::unique_ptr<ReplicaThreads>> ReplicaThreads::Create(
    Options options, const InputPipeline& input, Clock& clock,
    WorkerMetrics& metrics) {
  std::unique_ptr<ReplicaThreads> threads(
      new ReplicaThreads(std::move(options), clock, metrics));
  RETURN_IF_ERROR(threads->MakeSums());
  for (const std::string& device : threads->options_.devices) {
    RETURN_IF_ERROR(threads->AddReplica(device, input))
        << "replica on " << device;
  }
  threads->ChooseComposition();
  if (threads->composition_.store == Store::kDevices) {
    RETURN_IF_ERROR(threads->MakeMirrored());
  } else {
    RETURN_IF_ERROR(threads->TakeToHost());
  }
  return threads;
}

std::vector<Model*> ReplicaThreads::models() const {
  std::vector<Model*> models;
  for (const Replica& replica : replicas_) {
    models.push_back(replica.model.get());
  }
  return models;
}

absl::Status ReplicaThreads::MakeSums() {
  ASSIGN_OR_RETURN(std::shared_ptr<const AllReducePlanner> planner,
                   MakeAllReducePlanner(options_.job.strategy().mirrored()));
  if (planner == nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(
      planned_, PlannedSums::Create(std::move(planner),
                                    static_cast<int>(options_.devices.size())));
  return absl::OkStatus();
}

absl::Status ReplicaThreads::AddReplica(const std::string& device,
                                        const InputPipeline& input) {
  Replica replica;
  ASSIGN_OR_RETURN(replica.device,
                   OpenDevice(device, options_.threads, options_.job.worker()));
  ASSIGN_OR_RETURN(replica.model,
                   Model::Create(options_.graph, *replica.device));
  replica.input = std::make_unique<ReplicaInput>(
      input, ReplicaInput::Options{
                 .seed = options_.job.seed(),
                 .total_replicas = static_cast<int>(options_.devices.size()),
                 .batch_size = options_.job.train().batch_size()});
  replicas_.push_back(std::move(replica));
  return absl::OkStatus();
}

void ReplicaThreads::ChooseComposition() {
  const auto updating = std::count_if(
      replicas_.begin(), replicas_.end(), [](const Replica& replica) {
        return replica.model->device_training() != nullptr;
      });
  composition_ =
      Compose(options_.job, {.devices = static_cast<int>(replicas_.size()),
                             .updating_devices = static_cast<int>(updating)});
  if (composition_.why_host.empty()) return;
  LOG(INFO) << "the variables are in host memory, and gradients are summed "
            << "there"
            << (composition_.adder == Adder::kNccl ? ", not by NCCL" : "")
            << ": " << composition_.why_host;
}

absl::Status ReplicaThreads::MakeMirrored() {
  std::vector<DeviceVariables::Place> places;
  for (Replica& replica : replicas_) {
    replica.model = KeepOnDevice(std::move(replica.model), *replica.device);
    places.push_back({.training = replica.model->device_training(),
                      .device = replica.device.get()});
  }
  using Way = MirroredVariables::Way;
  const Way way = composition_.adder == Adder::kNccl    ? Way::kNccl
                  : composition_.adder == Adder::kFirst ? Way::kFirstDevice
                                                        : Way::kAllDevices;
  ASSIGN_OR_RETURN(mirrored_, MirroredVariables::Create(
                                  options_.graph.variables, options_.job,
                                  std::move(places), way));
  return absl::OkStatus();
}

// Only a lone replica may clip: ResolveProcessReplicas() has seen to it.
absl::Status ReplicaThreads::TakeToHost() {
  for (Replica& replica : replicas_) {
    ASSIGN_OR_RETURN(replica.model, ForTraining(std::move(replica.model),
                                                *replica.device, options_.job));
  }
  return absl::OkStatus();
}

absl::Status ReplicaThreads::UseOptimizers(const job::Job& job) {
  return mirrored_->UseOptimizers(job);
}

ReplicaThreads::Shared ReplicaThreads::NewShared(int64_t first_step,
                                                 ParameterStore& parameters) {
  if (composition_.has_parts()) {
    auto steps = std::make_unique<DeviceSteps>(
        *mirrored_, DeviceSteps::Options{.first_step = first_step,
                                         .devices = options_.devices});
    DeviceParts* const parts = steps.get();
    return {std::move(steps), parts};
  }
  return {std::make_unique<ReplicaParameters>(
      parameters, ReplicaParameters::Options{
                      .replicas = static_cast<int>(replicas_.size()),
                      .first_step = first_step,
                      .sums_on_one_device = composition_.adder == Adder::kFirst,
                      .planned = planned_.get(),
                      .devices = options_.devices})};
}

absl::Status ReplicaThreads::Train(int64_t first_step,
                                   std::function<bool(int64_t)> is_over,
                                   ParameterStore& parameters,
                                   TrainingReporter& reporter) {
  const Shared shared = NewShared(first_step, parameters);
  SharedSteps steps(first_step, std::move(is_over));
  SyncTrainingLoop::Options loop;
  loop.non_finite_loss = options_.job.worker().non_finite_loss();
  loop.seed = options_.job.seed();
  // The other replicas are threads of this process: they don't get lost.
  loop.step_timeout = absl::InfiniteDuration();
  loop.parts = shared.parts;
  // Passes of one thread follow each other: the shared reporter has the passes
  // of replica 0, and the batches of all.
  std::deque<TrainingReporter> of_others;
  for (size_t i = 1; i < replicas_.size(); ++i) {
    of_others.emplace_back(clock_, reporter.hooks());
  }
  std::vector<absl::Status> results(replicas_.size());
  const auto run = [&](size_t i) {
    SharedStepsOfReplica source(static_cast<int>(i), first_step, steps);
    SyncTrainingLoop::Options of_replica = loop;
    of_replica.counts_steps = i == 0;
    Replica& replica = replicas_[i];
    results[i] = SyncTrainingLoop(of_replica, *replica.model, *replica.input,
                                  *shared.parameters, source, clock_, metrics_,
                                  i == 0 ? reporter : of_others[i - 1])
                     .Run();
  };
  {
    std::vector<std::jthread> threads;
    for (size_t i = 1; i < replicas_.size(); ++i) threads.emplace_back(run, i);
    run(0);
  }
  for (TrainingReporter& other : of_others) {
    reporter.AddWorkOf(other.Take());
  }
  return FirstCause(results);
}

std::string ReplicaThreads::Describe() const {
  std::vector<std::string> devices;
  for (size_t i = 0; i < replicas_.size(); ++i) {
    devices.push_back(
        absl::StrCat(options_.devices[i], " = ", replicas_[i].device->name()));
  }
  const bool one = composition_.adder == Adder::kFirst;
  const bool on_host = composition_.store == Store::kHost;
  const std::string sums =
      planned_ != nullptr ? absl::StrCat("custom all-reduce ", planned_->name())
      : on_host           ? (one ? "replica 0" : "all replicas")
      : composition_.adder == Adder::kNccl ? "NCCL"
      : one                                ? options_.devices.front()
                                           : "all devices";
  return absl::StrCat(absl::StrJoin(devices, ", "),
                      on_host ? "; " : "; each device has the variables, and ",
                      "gradients are summed by ", sums);
}

}  // namespace parasol
