#include "worker/replica_threads.h"

#include <deque>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "worker/clipped_model.h"
#include "worker/local/replica_parameters.h"
#include "worker/micro_batch_model.h"
#include "worker/shared_steps.h"
#include "worker/sync_training_loop.h"
#include "worker/worker_device.h"

namespace parasol {
namespace {

// Returns the first error that is the cause of others: a replica that fails
// cancels the others' waits.
absl::Status FirstCause(const std::vector<absl::Status>& results) {
  absl::Status cause;
  for (const absl::Status& result : results) {
    if (!result.ok() && !absl::IsCancelled(result)) return result;
    cause.Update(result);
  }
  return cause;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ReplicaThreads>> ReplicaThreads::Create(
    Options options, const InputPipeline& input, Clock& clock,
    WorkerMetrics& metrics) {
  std::unique_ptr<ReplicaThreads> threads(
      new ReplicaThreads(std::move(options), clock, metrics));
  for (const std::string& device : threads->options_.devices) {
    RETURN_IF_ERROR(threads->AddReplica(device, input))
        << "replica on " << device;
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

absl::Status ReplicaThreads::AddReplica(const std::string& device,
                                        const InputPipeline& input) {
  Replica replica;
  ASSIGN_OR_RETURN(replica.device,
                   OpenDevice(device, options_.threads, options_.job.worker()));
  ASSIGN_OR_RETURN(std::unique_ptr<Model> model,
                   Model::Create(options_.graph, *replica.device));
  // Only a lone replica may clip: ResolveLocalReplicas() has seen to it.
  replica.model =
      ClipGradients(SplitBatches(std::move(model), options_.job), options_.job);
  replica.input = std::make_unique<ReplicaInput>(
      input, ReplicaInput::Options{
                 .seed = options_.job.seed(),
                 .total_replicas = static_cast<int>(options_.devices.size()),
                 .batch_size = options_.job.train().batch_size()});
  replicas_.push_back(std::move(replica));
  return absl::OkStatus();
}

absl::StatusOr<int64_t> ReplicaThreads::Train(
    int64_t first_step, std::function<bool(int64_t)> is_over,
    LocalParameters& parameters, TrainingReporter& reporter) {
  ReplicaParameters shared(parameters,
                           {.replicas = static_cast<int>(replicas_.size()),
                            .first_step = first_step,
                            .sums_on_one_device = options_.sums_on_one_device,
                            .devices = options_.devices});
  SharedSteps steps(first_step, std::move(is_over));
  SyncTrainingLoop::Options loop;
  loop.non_finite_loss = options_.job.worker().non_finite_loss();
  loop.seed = options_.job.seed();
  // The other replicas are threads of this process: they don't get lost.
  loop.step_timeout = absl::InfiniteDuration();
  // Passes of one thread follow each other: the shared reporter has those of
  // replica 0, and the examples of all.
  std::deque<TrainingReporter> of_others;
  for (size_t i = 1; i < replicas_.size(); ++i) of_others.emplace_back(clock_);
  std::vector<absl::Status> results(replicas_.size());
  std::vector<int64_t> completed(replicas_.size());
  const auto run = [&](size_t i) {
    SharedStepsOfReplica source(static_cast<int>(i), first_step, steps);
    SyncTrainingLoop::Options of_replica = loop;
    of_replica.counts_steps = i == 0;
    Replica& replica = replicas_[i];
    results[i] = SyncTrainingLoop(of_replica, *replica.model, *replica.input,
                                  shared, source, clock_, metrics_,
                                  i == 0 ? reporter : of_others[i - 1])
                     .Run();
    completed[i] = source.completed();
  };
  {
    std::vector<std::jthread> threads;
    for (size_t i = 1; i < replicas_.size(); ++i) threads.emplace_back(run, i);
    run(0);
  }
  for (TrainingReporter& other : of_others) {
    const TrainingReport report = other.Take();
    reporter.AddExamples(report.examples, report.loss_sum,
                         report.output_loss_sums);
  }
  RETURN_IF_ERROR(FirstCause(results));
  return completed.front();
}

std::string ReplicaThreads::Describe() const {
  std::vector<std::string> devices;
  for (size_t i = 0; i < replicas_.size(); ++i) {
    devices.push_back(
        absl::StrCat(options_.devices[i], " = ", replicas_[i].device->name()));
  }
  return absl::StrCat(
      absl::StrJoin(devices, ", "), "; gradients are summed by ",
      options_.sums_on_one_device ? "replica 0" : "all replicas");
}

}  // namespace parasol
