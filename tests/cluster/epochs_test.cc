// An epoch is every example once: in each consistency mode, with any number of
// workers and replicas, and without a cluster.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "cluster/job/defaults.h"
#include "cluster/job/job_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/model/graph.h"
#include "tests/cluster/cluster_runs.h"
#include "tests/cluster/delaying_clock.h"
#include "tests/cluster/test_cluster.h"
#include "worker/lone_training.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;

constexpr int kExamples = 2000;
constexpr int kEpochs = 3;
constexpr double kRate = 1e-6;

// Each example's only value is its number. The files have 700, 700 and 600
// examples.
std::string ExamplesDirectory() {
  static const auto* const directory = new std::string([] {
    const fs::path path = fs::path(getenv("TEST_TMPDIR")) / "examples";
    fs::create_directories(path);
    for (int file = 0; file < 3; ++file) {
      std::ofstream out(path / absl::StrCat("train-", file, ".csv"));
      out << "number,label\n";
      for (int i = 700 * file; i < std::min(700 * (file + 1), kExamples); ++i) {
        out << i << ",0\n";
      }
    }
    return path.string();
  }());
  return *directory;
}

// The model has a row for each example. With this rate, rows stay so small that
// the loss's gradient is 1/2 for every example, divided by the size of its
// batch: a row shows in batches of which sizes its example has been.
job::Job EpochsJob(int batch_size) {
  absl::StatusOr<job::Job> job = ParseJob(R"(
      name: "epochs"
      seed: 3
      model {
        input {
          name: "ids"
          ids { column { name: "number" identity { num_ids: 2000 } } }
        }
        sparse_table { name: "seen" width: 1 initializer { zeros {} } }
        layer { input: "ids" embedding_bag { table: "seen" } }
        loss { binary_crossentropy {} }
      }
      train {
        csv {
          file: "train-0.csv" file: "train-1.csv" file: "train-2.csv"
          label { column: "label" }
        }
        auto_shard: DATA
      }
      checkpoint { every_steps: 10 }
      end { epochs: 3 }
  )",
                                          "epochs.textproto");
  EXPECT_OK(job);
  job->mutable_train()->set_batch_size(batch_size);
  job->mutable_optimizer()->mutable_sgd()->set_learning_rate(kRate);
  FillDefaults(*job);
  return *std::move(job);
}

class EpochsTest : public ClusterRunsTest {
 protected:
  static void Train(const job::Job& job, const std::string& run, int workers) {
    SCOPED_TRACE(run);
    TestCluster cluster(job, /*num_ps=*/2, workers, Directory(run));
    cluster.SetDataDirectory(ExamplesDirectory());
    ASSERT_OK(cluster.StartChief());
    for (int ps = 0; ps < 2; ++ps) ASSERT_OK(cluster.StartPs(ps));
    for (int i = 0; i < workers; ++i) ASSERT_OK(cluster.StartWorker(i));
    EXPECT_OK(cluster.WaitForChief());
  }

  static absl::Status TrainAlone(const job::Job& job, const std::string& run) {
    LoneTraining::Options options;
    ASSIGN_OR_RETURN(options.trainer.graph, ResolveGraph(job.model()));
    options.trainer.job = job;
    options.trainer.job.mutable_checkpoint()->set_directory(Directory(run));
    options.trainer.data_dir = ExamplesDirectory();
    options.trainer.replicas.devices = {"cpu"};
    MetricsRegistry metrics;
    return LoneTraining(options, Clock::Real(), metrics).Run();
  }

  // Expects that the run ended after `steps` steps, and that every example was
  // in `epochs` batches of `full` or, the last of an epoch, `last` examples.
  // The rows' gradients were multiplied by `scale`.
  static void ExpectEachExampleSeen(const std::string& run, int64_t steps,
                                    int full, int last, int scale = 1,
                                    int epochs = kEpochs) {
    SCOPED_TRACE(run);
    const auto checkpoint = Newest(run);
    EXPECT_EQ(checkpoint->manifest().global_step(), steps);
    std::map<int64_t, int> wrong;  // by their share of a row
    int rows = 0;
    EXPECT_OK(checkpoint->ReadRows("seen", [&](const RowBatch& batch) {
      for (size_t i = 0; i < batch.ids.size(); ++i) {
        ++rows;
        const double seen = -batch.rows[i] / (kRate / 2 * scale);
        bool is_right = false;
        for (int of_full = 0; of_full <= epochs; ++of_full) {
          const double want =
              of_full / double(full) + (epochs - of_full) / double(last);
          is_right |= std::abs(seen - want) < 1e-4 * want;
        }
        if (!is_right) ++wrong[static_cast<int64_t>(seen * 1e6)];
      }
      return absl::OkStatus();
    }));
    EXPECT_EQ(rows, kExamples);
    EXPECT_THAT(wrong, testing::IsEmpty());
  }
};

TEST_F(EpochsTest, AsynchronousWorkersSeeEachExampleOnceInAnEpoch) {
  for (const int workers : {1, 2, 3}) {
    const std::string run = absl::StrCat(workers, "_workers");
    Train(EpochsJob(128), run, workers);
    ExpectEachExampleSeen(run, 48, 128, 80);
  }
}

TEST_F(EpochsTest, WorkersOfDifferentSpeedSeeEachExampleOnceInAnEpoch) {
  DelayingClock slow(1, absl::Milliseconds(4));
  TestCluster cluster(EpochsJob(128), 1, 2, Directory("slow"));
  cluster.SetDataDirectory(ExamplesDirectory());
  cluster.SetWorkerClock(0, slow);
  ASSERT_OK(cluster.StartChief());
  ASSERT_OK(cluster.StartPs(0));
  for (const int worker : {0, 1}) ASSERT_OK(cluster.StartWorker(worker));
  EXPECT_OK(cluster.WaitForChief());
  ExpectEachExampleSeen("slow", 48, 128, 80);
}

TEST_F(EpochsTest, WhatAWorkerLeavesUndoneIsSeenOnce) {
  job::Job job = EpochsJob(8);  // 250 steps are an epoch
  TestCluster cluster(job, 1, 2, Directory("left"));
  cluster.SetDataDirectory(ExamplesDirectory());
  ASSERT_OK(cluster.StartChief());
  ASSERT_OK(cluster.StartPs(0));
  for (const int worker : {0, 1}) ASSERT_OK(cluster.StartWorker(worker));
  for (const int64_t step : {50, 150, 300}) {
    ASSERT_OK(cluster.AwaitStep(step));
    // Its gradients are acknowledged when it leaves.
    const absl::Status left = cluster.StopWorker(1);
    EXPECT_TRUE(left.ok() || absl::IsCancelled(left)) << left;
    ASSERT_OK(cluster.StartWorker(1));
  }
  EXPECT_OK(cluster.WaitForChief());
  ExpectEachExampleSeen("left", 750, 8, 8);
}

TEST_F(EpochsTest, WorkersOfBoundedStalenessSeeEachExampleOnceInAnEpoch) {
  for (const int bound : {0, 2}) {
    job::Job job = EpochsJob(128);
    job.mutable_parameter_server()->mutable_bounded_staleness()->set_bound(
        bound);
    for (const int workers : {1, 2, 3}) {
      const std::string run = absl::StrCat(bound, "_", workers, "_workers");
      Train(job, run, workers);
      ExpectEachExampleSeen(run, 48, 128, 80);
    }
  }
}

TEST_F(EpochsTest, FilesThatAreSplitAmongWorkersAreAllSeen) {
  job::Job job = EpochsJob(100);
  job.mutable_train()->set_auto_shard(job::Dataset::FILE);
  Train(job, "two", 2);  // of 1,300 and 700 examples
  ExpectEachExampleSeen("two", 60, 100, 100);
  job.mutable_train()->set_batch_size(128);
  Train(job, "three", 3);  // 700 are 5 batches of 128 and one of 60
  EXPECT_EQ(Newest("three")->manifest().global_step(), 3 * (6 + 6 + 5));
}

TEST_F(EpochsTest, ReplicasSeeEachExampleOnceInAnEpoch) {
  struct Case {
    int replicas;
    int batch_size;
    int64_t steps;
    int full;  // examples of a step
    int last;
  };
  // 667, 667 and 666 examples in batches of 333: the last step has one of each
  // of two replicas.
  for (const Case& c : {Case{1, 128, 48, 128, 80}, Case{2, 64, 48, 128, 80},
                        Case{3, 128, 18, 384, 80}, Case{3, 333, 9, 999, 2}}) {
    job::Job job = EpochsJob(c.batch_size);
    MakeSynchronous({.aggregate = c.replicas, .total = c.replicas}, job);
    for (const int workers : {1, 2, 3}) {
      const std::string run =
          absl::StrCat(c.replicas, "_of_", c.batch_size, "_", workers);
      Train(job, run, workers);
      // A row's gradients are divided by the number of replicas that have it.
      ExpectEachExampleSeen(run, c.steps, c.full, c.last, c.replicas);
    }
  }
}

TEST_F(EpochsTest, AFractionOfAnEpochIsRoundedUpToAStep) {
  job::Job job = EpochsJob(128);
  job.mutable_end()->set_epochs(1.1);
  Train(job, "fraction", 2);
  EXPECT_EQ(Newest("fraction")->manifest().global_step(), 18);
}

TEST_F(EpochsTest, AWorkerWithoutAClusterSeesEachExampleOnceInAnEpoch) {
  EXPECT_OK(TrainAlone(EpochsJob(128), "alone"));
  ExpectEachExampleSeen("alone", 48, 128, 80);
}

TEST_F(EpochsTest, AWorkerThatResumesAloneGoesOnWithTheNextExamples) {
  job::Job job = EpochsJob(128);
  job.mutable_end()->set_steps(23);
  EXPECT_OK(TrainAlone(job, "resumed"));
  job.mutable_end()->clear_steps();
  EXPECT_OK(TrainAlone(job, "resumed"));
  ExpectEachExampleSeen("resumed", 48, 128, 80);
}

}  // namespace
}  // namespace parasol
