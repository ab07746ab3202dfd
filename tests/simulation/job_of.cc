#include "tests/simulation/job_of.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace parasol::simulation {
namespace {

// Returns the number of shards of the training set.
int TotalReplicas(const Shape& shape) {
  return shape.mode >= Shape::Mode::kSynchronous
             ? shape.replicas + shape.backups
             : 1;
}

void KeepBest(job::Job& job) {
  job::KeepBest& best = *job.mutable_checkpoint()->mutable_keep_best();
  best.set_metric("loss");
  best.set_mode(job::MIN);
}

// Gives the job the other decisions that evaluations make.
void GoByLoss(int patience, job::Job& job) {
  job::EarlyStopping& stopping = *job.mutable_end()->mutable_early_stopping();
  stopping.set_metric("loss");
  stopping.set_mode(job::MIN);
  stopping.set_patience(patience);
  job::ReduceOnPlateau& plateau =
      *job.mutable_optimizer()->mutable_reduce_on_plateau();
  plateau.set_metric("loss");
  plateau.set_mode(job::MIN);
  plateau.set_factor(0.5);
  plateau.set_patience(1);
}

void SetGroup(const Shape& shape, job::MultiWorkerMirrored& strategy) {
  strategy.set_timeout_seconds(300);
  for (int i = 0; i < shape.devices; ++i) {
    strategy.add_device(absl::StrCat("cpu:", i));
  }
}

job::Job MakeJob(const Shape& shape, const JobChoice& choice) {
  job::Job job;
  job.mutable_train()->set_batch_size(kBatchSize);
  if (shape.growth > 0) job.mutable_train()->set_follow(true);
  job.mutable_optimizer()->mutable_sgd()->set_learning_rate(
      0.1F / static_cast<float>(1 + choice.hyperparameters));
  if (shape.epochs > 0) {
    job.mutable_end()->set_epochs(shape.epochs);
  } else {
    job.mutable_end()->set_steps(shape.steps);
  }
  job.mutable_checkpoint()->set_every_steps(shape.checkpoint_every);
  job.mutable_checkpoint()->set_max_to_keep(shape.max_to_keep);
  if (shape.evaluation > absl::ZeroDuration()) KeepBest(job);
  // The reference of a group makes all steps, at one rate.
  if (shape.evaluation > absl::ZeroDuration() &&
      shape.mode != Shape::Mode::kGroup) {
    GoByLoss(shape.patience, job);
  }
  if (shape.evaluation > absl::ZeroDuration() && shape.max_lag >= 0) {
    job.mutable_evaluation()->set_every_steps(shape.checkpoint_every);
    job.mutable_evaluation()->set_max_lag(shape.max_lag);
  }
  job::ParameterServerStrategy& strategy = *job.mutable_parameter_server();
  if (shape.replicates) {
    strategy.set_durability(job::ParameterServerStrategy::REPLICATE);
  }
  strategy.mutable_fixed_shards()->set_shards(1 + choice.partitioner);
  switch (shape.mode) {
    case Shape::Mode::kAsynchronous:
      strategy.mutable_asynchronous();
      break;
    case Shape::Mode::kBoundedStaleness:
      strategy.mutable_bounded_staleness()->set_bound(shape.bound);
      break;
    case Shape::Mode::kSynchronous:
      strategy.mutable_synchronous()->set_replicas_to_aggregate(shape.replicas);
      strategy.mutable_synchronous()->set_total_replicas(TotalReplicas(shape));
      break;
    case Shape::Mode::kGroup:
      strategy.mutable_synchronous()->set_replicas_to_aggregate(shape.replicas);
      strategy.mutable_synchronous()->set_total_replicas(shape.replicas);
      job.mutable_optimizer()->mutable_sgd()->set_momentum(0.5);
      SetGroup(shape, *job.mutable_strategy()->mutable_multi_worker_mirrored());
      break;
  }
  return job;
}

// One variable per shard; its id says which partitioner has made it.
ShardBoard::Shard MakeShard(int index, const JobChoice& choice) {
  wire::PartSpec part;
  part.set_id(index);
  part.set_variable(absl::StrCat("v", index, "/", choice.partitioner));
  part.set_elements(16);
  return {index, absl::StrCat("ps-", index), {std::move(part)}};
}

}  // namespace

int64_t ExamplesOf(const Shape& shape) {
  const int64_t batches = shape.steps / std::max(1, shape.epochs);
  return kBatchSize * batches * TotalReplicas(shape);
}

std::vector<int64_t> ShardExamplesOf(const Shape& shape) {
  const int shards = TotalReplicas(shape);
  return std::vector<int64_t>(shards, ExamplesOf(shape) / shards);
}

uint64_t LayoutOf(const JobChoice& job) { return 1 + job.partitioner; }

Coordinator::Options OptionsOf(const Shape& shape, const JobChoice& job) {
  Coordinator::Options options;
  options.job = MakeJob(shape, job);
  for (int i = 0; i < shape.ps; ++i) {
    options.shards.push_back(MakeShard(i, job));
    options.tasks[{"ps", i}] = options.shards.back().address;
  }
  options.layout = LayoutOf(job);
  // Two workers share a machine.
  for (int i = 0; i < shape.workers; ++i) {
    options.tasks[{"worker", i}] = absl::StrCat("host", i / 2, ":1");
  }
  if (shape.evaluation > absl::ZeroDuration()) {
    options.tasks[{"evaluator", 0}] = "";
  }
  options.is_mirrored = shape.mode == Shape::Mode::kGroup;
  options.group_secret = options.is_mirrored ? "secret" : "";
  return options;
}

}  // namespace parasol::simulation
