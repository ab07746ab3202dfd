#include "tests/simulation/job_of.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace parasol::simulation {
namespace {

// Returns the number of shards of the training set.
int TotalReplicas(const Shape& shape) {
  return shape.mode == Shape::Mode::kSynchronous
             ? shape.replicas + shape.backups
             : 1;
}

job::Job MakeJob(const Shape& shape, const JobChoice& choice) {
  job::Job job;
  job.mutable_train()->set_batch_size(kBatchSize);
  job.mutable_optimizer()->mutable_sgd()->set_learning_rate(
      0.1F / static_cast<float>(1 + choice.hyperparameters));
  if (shape.epochs > 0) {
    job.mutable_end()->set_epochs(shape.epochs);
  } else {
    job.mutable_end()->set_steps(shape.steps);
  }
  job.mutable_checkpoint()->set_every_steps(shape.checkpoint_every);
  job.mutable_checkpoint()->set_max_to_keep(shape.max_to_keep);
  job::ParameterServerStrategy& strategy = *job.mutable_parameter_server();
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
  for (int i = 0; i < shape.workers; ++i) options.tasks[{"worker", i}] = "";
  return options;
}

}  // namespace parasol::simulation
