#include "worker/opened_job.h"

#include <utility>

#include "base/log.h"
#include "base/status_macros.h"
#include "cluster/job/followed/followed_set.h"
#include "cluster/job/training_end.h"
#include "ml/input/feature/model_inputs.h"
#include "ml/input/file/file_set.h"
#include "ml/loss/loss_spec.h"
#include "ml/model/graph_inputs.h"
#include "worker/checked_data.h"
#include "worker/followed/followed_input.h"

namespace parasol {

int CountInputShards(const job::Job& job, bool is_in_step, int workers) {
  if (is_in_step) return job.parameter_server().synchronous().total_replicas();
  return job.train().auto_shard() == job::Dataset::FILE ? workers : 1;
}

absl::Status OpenedJob::Open(
    const job::Job& job, const Options& options,
    const std::function<absl::Status(const Graph&)>& check) {
  job_ = job;
  ASSIGN_OR_RETURN(const Graph graph, ResolveGraph(job_.model()));
  RETURN_IF_ERROR(CheckLossCode(graph.outputs));
  RETURN_IF_ERROR(check(graph));
  LocalStepsOptions local = {.cancelled = options.cancelled};
  if (!options.is_in_step) {
    // Each worker's difference is an update of its own.
    local.statistics_share = 1.0f / static_cast<float>(options.workers);
  }
  ASSIGN_OR_RETURN(
      devices_, OpenWorkerDevices(job_, graph, options.device, options.threads,
                                  std::move(local)));
  const int shards =
      CountInputShards(job_, options.is_in_step, options.workers);
  InputOptions input;
  input.data_dir = options.data_dir;
  input.seed = job_.seed();
  input.num_shards = shards;
  input.by_number = !options.is_in_step;
  ASSIGN_OR_RETURN(ModelInputs inputs, TrainingInputsOf(job_.model(), graph));
  if (job_.train().follow()) {
    return Follow(options, std::move(inputs));
  }
  ASSIGN_OR_RETURN(input_, InputPipeline::Open(job_.train(), inputs, input));
  ASSIGN_OR_RETURN(shard_examples_, input_->ShardSizes(shards));
  TrainingEnd end(job_);
  RETURN_IF_ERROR(
      end.ObserveExamples(input_->total_examples(), shard_examples_));
  points_ = {end.steps_per_epoch().value_or(0), job_.summary().every_steps()};
  LogTraining(job_, DescribeDevices(devices_), input_->total_examples(),
              options.is_in_step ? shards : 0);
  return absl::OkStatus();
}

absl::Status OpenedJob::Follow(const Options& options, ModelInputs inputs) {
  const absl::Status folders =
      CheckFoldersOfGrowingSet(options.data_dir, FilePatterns(job_.train()));
  // A wrong data_dir is a fault of `check`, before the first step. Later ones
  // wait until the folder is back.
  if (!folders.ok()) return absl::UnavailableError(folders.message());
  std::shared_ptr<TopicSource> topic;
  if (const auto uri = FollowedTopic(job_.train())) {
    ASSIGN_OR_RETURN(topic, TopicSource::Open(*uri, job_.train()));
  }
  files_ = std::make_unique<TrainingFiles>();
  input_ = std::make_unique<FollowedInput>(
      FollowedInput::Options{.dataset = job_.train(),
                             .inputs = std::move(inputs),
                             .data_dir = options.data_dir,
                             .seed = job_.seed(),
                             .topic = std::move(topic)},
      *files_);
  points_ = {0, job_.summary().every_steps()};
  LOG(INFO) << "training on " << DescribeDevices(devices_)
            << " with the files of " << FollowedPattern(job_.train())
            << " as they come";
  return absl::OkStatus();
}

}  // namespace parasol
