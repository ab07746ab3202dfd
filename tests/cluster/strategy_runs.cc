#include "tests/cluster/strategy_runs.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "cluster/job/defaults.h"
#include "cluster/job/job_file.h"
#include "cluster/job/strategy.h"
#include "gtest/gtest.h"
#include "ml/model/graph.h"
#include "storage/checkpoint_reader.h"
#include "storage/checkpoint_store.h"
#include "tests/cluster/test_cluster.h"
#include "worker/lone_training.h"

namespace parasol {

job::Job ImageJob() {
  job::Job job = *ParseJob(R"(
      name: "image"
      seed: 11
      model {
        layer {
          name: "conv"
          conv2d { filters: 4 kernel_size: 3 kernel_l2: 0.001 }
        }
        layer { name: "normal" batch_normalization {} }
        layer { name: "relu" activation: RELU }
        layer { name: "flat" flatten {} }
        layer { name: "drop" dropout { rate: 0.25 } }
        layer { name: "logits" dense { units: 4 } }
        loss { sparse_categorical_crossentropy {} }
      }
      optimizer { adam { learning_rate: 0.01 } }
      end { epochs: 2 }
      checkpoint { every_steps: 7 max_to_keep: 100 }
  )",
                           "image.textproto");
  const job::Job quadrants = QuadrantsJob(1);
  *job.mutable_train() = quadrants.train();
  job.mutable_train()->set_batch_size(24);
  for (const int64_t size : {8, 8, 1})
    job.mutable_model()->add_input_shape(size);
  FillDefaults(job);
  return job;
}

std::string DevicesOf(int replicas) {
  std::string devices;
  for (int i = 0; i < replicas; ++i) {
    absl::StrAppend(&devices, "device: 'cpu:", i, "' ");
  }
  return devices;
}

void ListDevices(int devices, job::MultiWorkerMirrored& strategy) {
  for (int i = 0; i < devices; ++i) {
    strategy.add_device(absl::StrCat("cpu:", i));
  }
}

absl::Status StrategyRunsTest::TryAlone(job::Job job,
                                        const std::string& strategy,
                                        const std::string& data_dir,
                                        const std::string& run) {
  *job.mutable_strategy() =
      ParseJob(absl::StrCat("strategy { ", strategy, " }"), "strategy")
          ->strategy();
  job.mutable_checkpoint()->set_directory(Directory(run));
  ASSIGN_OR_RETURN(ProcessReplicas replicas,
                   ResolveProcessReplicas(job, "auto"));
  RETURN_IF_ERROR(SetReplicas(replicas.devices.size(), job));
  MetricsRegistry metrics;
  ASSIGN_OR_RETURN(Graph graph, ResolveGraph(job.model()));
  LoneTraining training({.trainer = {.job = job,
                                     .graph = std::move(graph),
                                     .replicas = std::move(replicas),
                                     .data_dir = data_dir}},
                        Clock::Real(), metrics);
  return training.Run();
}

void StrategyRunsTest::TrainAlone(const job::Job& job,
                                  const std::string& strategy,
                                  const std::string& data_dir,
                                  const std::string& run) {
  ASSERT_OK(TryAlone(job, strategy, data_dir, run));
}

void StrategyRunsTest::TrainInCluster(job::Job job, int replicas,
                                      const std::string& data_dir,
                                      const std::string& run) {
  MakeSynchronous({.aggregate = replicas, .total = replicas}, job);
  job.clear_eval();
  TestCluster cluster(job, /*num_ps=*/2, /*num_workers=*/2, Directory(run));
  cluster.SetDataDirectory(data_dir);
  ASSERT_OK(cluster.StartChief());
  for (const int i : {0, 1}) {
    ASSERT_OK(cluster.StartPs(i));
    ASSERT_OK(cluster.StartWorker(i));
  }
  ASSERT_OK(cluster.WaitForChief());
}

void StrategyRunsTest::TrainWithPs(job::Job job, int num_ps, int workers,
                                   const std::string& data_dir,
                                   const std::string& run) {
  MakeSynchronous({.aggregate = workers, .total = workers}, job);
  job.clear_eval();
  TestCluster cluster(job, num_ps, workers, Directory(run));
  cluster.SetDataDirectory(data_dir);
  ASSERT_OK(cluster.StartChief());
  for (int i = 0; i < workers; ++i) ASSERT_OK(cluster.StartWorker(i));
  ASSERT_OK(cluster.AwaitStatus("all workers", [&](const auto& status) {
    return std::count_if(status.task().begin(), status.task().end(),
                         [](const wire::TaskStatus& task) {
                           return task.task().role() == "worker" &&
                                  task.alive();
                         }) == workers;
  }));
  for (int i = 0; i < num_ps; ++i) ASSERT_OK(cluster.StartPs(i));
  ASSERT_OK(cluster.WaitForChief());
}

void StrategyRunsTest::TrainByWorkers(job::Job job, int workers,
                                      const std::string& data_dir,
                                      const std::string& run) {
  job.clear_eval();
  TestCluster cluster(job, /*num_ps=*/0, workers, Directory(run));
  cluster.SetDataDirectory(data_dir);
  ASSERT_OK(cluster.StartChief());
  for (int i = 0; i < workers; ++i) ASSERT_OK(cluster.StartWorker(i));
  ASSERT_OK(cluster.WaitForChief());
  for (int i = 0; i < workers; ++i) EXPECT_OK(cluster.WaitForWorker(i));
}

void StrategyRunsTest::TrainByBoth(job::Job job, int workers,
                                   const std::string& data_dir,
                                   const std::string& run) {
  job.clear_eval();
  job.mutable_strategy()->mutable_hybrid();
  FillDefaults(job);
  TestCluster cluster(job, /*num_ps=*/2, workers, Directory(run));
  cluster.SetDataDirectory(data_dir);
  ASSERT_OK(cluster.StartChief());
  for (int i = 0; i < 2; ++i) ASSERT_OK(cluster.StartPs(i));
  for (int i = 0; i < workers; ++i) ASSERT_OK(cluster.StartWorker(i));
  ASSERT_OK(cluster.WaitForChief());
  for (int i = 0; i < workers; ++i) EXPECT_OK(cluster.WaitForWorker(i));
}

Trained StrategyRunsTest::TrainedBy(const std::string& run) {
  return ReadTrained(*Newest(run));
}

Trained StrategyRunsTest::InitialOf(const std::string& run) {
  return ReadTrained(
      **CheckpointReader::Open(CheckpointStore(Directory(run)).PathOf(0)));
}

}  // namespace parasol
