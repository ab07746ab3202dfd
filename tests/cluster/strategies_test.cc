// A job ends with the same bits under every strategy: replicas on devices of
// one process beside workers and ps of a synchronous cluster.

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "cluster/collective/custom/custom_all_reduce.h"
#include "cluster/collective/plan/all_reduce_planner.h"
#include "cluster/collective/plan/reduction_plans.h"
#include "cluster/job/defaults.h"
#include "cluster/job/job_file.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/cluster/ratings.h"
#include "tests/cluster/strategy_runs.h"
#include "tests/cluster/test_cluster.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;

using StrategiesTest = StrategyRunsTest;

// An all-reduce of a user that adds in ascending order of the replicas.
class InOrder : public AllReducePlanner {
 public:
  std::string name() const override { return "in_order"; }
  CollectivePlan AllReduce(const Reduction& reduction,
                           int rank) const override {
    return AllReducePlan(reduction, ReductionAlgorithm::kChain, rank);
  }
};

const CustomAllReduceRegistration kInOrder(
    "in_order",
    [](const job::Custom&)
        -> absl::StatusOr<std::unique_ptr<const AllReducePlanner>> {
      return std::make_unique<InOrder>();
    });

TEST_F(StrategiesTest, AnImageModelEndsWithTheBitsOfASynchronousCluster) {
  for (const int replicas : {1, 2, 3}) {
    SCOPED_TRACE(replicas);
    const std::string devices = DevicesOf(replicas);
    const auto run = [replicas](const std::string& name) {
      return absl::StrCat(name, replicas);
    };
    TrainInCluster(ImageJob(), replicas, QuadrantsDirectory(), run("cluster"));
    const Trained want = TrainedBy(run("cluster"));
    TrainAlone(ImageJob(), absl::StrCat("mirrored { ", devices, " }"),
               QuadrantsDirectory(), run("mirrored"));
    EXPECT_EQ(TrainedBy(run("mirrored")), want);
    TrainAlone(ImageJob(),
               absl::StrCat("mirrored { ", devices,
                            " cross_device_ops: REDUCTION_TO_ONE_DEVICE }"),
               QuadrantsDirectory(), run("to_one"));
    EXPECT_EQ(TrainedBy(run("to_one")), want);
    TrainAlone(
        ImageJob(),
        absl::StrCat("mirrored { ", devices, " custom { type: 'in_order' } }"),
        QuadrantsDirectory(), run("planned"));
    EXPECT_EQ(TrainedBy(run("planned")), want);
    TrainAlone(ImageJob(), absl::StrCat("central_storage { ", devices, " }"),
               QuadrantsDirectory(), run("central"));
    EXPECT_EQ(TrainedBy(run("central")), want);
    TrainByWorkers(ImageJob(), replicas, QuadrantsDirectory(), run("workers"));
    EXPECT_EQ(TrainedBy(run("workers")), want);
    job::Job ring = ImageJob();
    ring.mutable_strategy()->mutable_multi_worker_mirrored()->set_communication(
        job::MultiWorkerMirrored::RING);
    FillDefaults(ring);
    TrainByWorkers(ring, replicas, QuadrantsDirectory(), run("ring"));
    EXPECT_EQ(TrainedBy(run("ring")), want);
  }
}

// Epochs end with exchanges of fewer local steps, and with a part of one.
job::Job LocalStepsJob(const std::string& settings) {
  job::Job job = ImageJob();
  job::ParameterServerStrategy& strategy = *job.mutable_parameter_server();
  EXPECT_TRUE(google::protobuf::TextFormat::MergeFromString(
      absl::StrCat("local_steps { ", settings, " }"), &strategy));
  FillDefaults(job);
  return job;
}

constexpr char kNesterov[] =
    "steps: 3 outer { sgd { learning_rate: .7 momentum: .9 nesterov: true } }";

// A replica that another worker takes over begins its slots anew: so none.
TEST_F(StrategiesTest, LocalStepsEndWithTheBitsOfASynchronousCluster) {
  job::Job job = LocalStepsJob(kNesterov);
  job.mutable_train()->set_batch_size(7);
  job::Optimizer inner;
  inner.mutable_sgd()->set_learning_rate(.05);
  FillDefaults(inner);
  *job.mutable_parameter_server()->mutable_local_steps()->mutable_inner() =
      inner;
  for (const int replicas : {1, 2, 3}) {
    SCOPED_TRACE(replicas);
    const std::string cluster = absl::StrCat("cluster", replicas),
                      mirrored = absl::StrCat("mirrored", replicas);
    TrainInCluster(job, replicas, QuadrantsDirectory(), cluster);
    EXPECT_FALSE(TrainedBy(cluster) == InitialOf(cluster));
    TrainAlone(job, absl::StrCat("mirrored { ", DevicesOf(replicas), " }"),
               QuadrantsDirectory(), mirrored);
    EXPECT_EQ(TrainedBy(mirrored), TrainedBy(cluster));
  }
}

TEST_F(StrategiesTest, LocalStepsWithSlotsEndWithTheSameBits) {
  job::Job job = LocalStepsJob(kNesterov);
  job.mutable_train()->set_batch_size(7);
  for (const int replicas : {1, 2, 3}) {
    SCOPED_TRACE(replicas);
    const std::string devices = DevicesOf(replicas);
    const std::string workers = absl::StrCat("workers", replicas),
                      mirrored = absl::StrCat("mirrored", replicas),
                      central = absl::StrCat("central", replicas);
    TrainByWorkers(job, replicas, QuadrantsDirectory(), workers);
    TrainAlone(job, absl::StrCat("mirrored { ", devices, " }"),
               QuadrantsDirectory(), mirrored);
    EXPECT_EQ(TrainedBy(mirrored), TrainedBy(workers));
    TrainAlone(job, absl::StrCat("central_storage { ", devices, " }"),
               QuadrantsDirectory(), central);
    EXPECT_EQ(TrainedBy(central), TrainedBy(workers));
    job::Job on_one = job;
    ListDevices(replicas,
                *on_one.mutable_strategy()->mutable_multi_worker_mirrored());
    const std::string devices_of_one = absl::StrCat("devices", replicas);
    TrainByWorkers(on_one, 1, QuadrantsDirectory(), devices_of_one);
    EXPECT_EQ(TrainedBy(devices_of_one), TrainedBy(workers));
  }
}

// Fragments of an exchange, in turn and beside steps, on any number of ps.
TEST_F(StrategiesTest, FragmentsEndWithTheBitsOfReplicasInOneProcess) {
  int runs = 0;
  for (const std::string parts :
       {"steps: 4 fragments: 2", "steps: 3 overlap_steps: 1",
        "steps: 7 fragments: 3 overlap_steps: 1"}) {
    job::Job job = LocalStepsJob(absl::StrCat(
        parts,
        " outer { sgd { learning_rate: .7 momentum: .9 nesterov: true } }"));
    job.mutable_train()->set_batch_size(3);
    // A replica that another worker takes over begins anew: none has a place to
    // change before all workers are there.
    for (const int replicas : {1, 2}) {
      SCOPED_TRACE(absl::StrCat(parts, " ", replicas));
      const std::string run = absl::StrCat("run", ++runs);
      TrainAlone(job, absl::StrCat("mirrored { ", DevicesOf(replicas), " }"),
                 QuadrantsDirectory(), run + "mirrored");
      const Trained want = TrainedBy(run + "mirrored");
      EXPECT_NE(want, InitialOf(run + "mirrored"));
      TrainAlone(job,
                 absl::StrCat("central_storage { ", DevicesOf(replicas), " }"),
                 QuadrantsDirectory(), run + "central");
      EXPECT_EQ(TrainedBy(run + "central"), want);
      for (const int ps : {1, 3}) {
        const std::string cluster = absl::StrCat(run, "ps", ps);
        TrainWithPs(job, ps, replicas, QuadrantsDirectory(), cluster);
        EXPECT_EQ(TrainedBy(cluster), want);
      }
    }
  }
}

TEST_F(StrategiesTest, OneLocalStepIsAStepOfSynchronousTraining) {
  job::Job plain = ImageJob();
  *plain.mutable_optimizer() = {};
  plain.mutable_optimizer()->mutable_sgd()->set_learning_rate(.05);
  job::Job local = plain;
  FillDefaults(plain);
  job::LocalSteps& steps =
      *local.mutable_parameter_server()->mutable_local_steps();
  steps.set_steps(1);
  steps.mutable_outer()->mutable_sgd()->set_learning_rate(1);
  FillDefaults(local);
  TrainInCluster(plain, 2, QuadrantsDirectory(), "plain");
  TrainInCluster(local, 2, QuadrantsDirectory(), "local");
  const Trained want = TrainedBy("plain"), got = TrainedBy("local");
  ASSERT_EQ(got.variables.size(), want.variables.size());
  for (const auto& [name, values] : want.variables) {
    EXPECT_THAT(got.variables.at(name),
                ::testing::Pointwise(::testing::FloatNear(2e-5), values))
        << name;
  }
}

TEST_F(StrategiesTest, AModelOfTablesEndsWithTheBitsOfASynchronousCluster) {
  const job::Job job = RatingsJob(150);
  for (const int replicas : {1, 2, 3}) {
    SCOPED_TRACE(replicas);
    const std::string cluster = absl::StrCat("cluster", replicas),
                      mirrored = absl::StrCat("mirrored", replicas),
                      workers = absl::StrCat("workers", replicas),
                      hybrid = absl::StrCat("hybrid", replicas);
    TrainInCluster(job, replicas, RatingsDirectory(), cluster);
    TrainAlone(job, absl::StrCat("mirrored { ", DevicesOf(replicas), " }"),
               RatingsDirectory(), mirrored);
    EXPECT_EQ(TrainedBy(mirrored), TrainedBy(cluster));
    TrainByWorkers(job, replicas, RatingsDirectory(), workers);
    EXPECT_EQ(TrainedBy(workers), TrainedBy(cluster));
    TrainByBoth(job, replicas, RatingsDirectory(), hybrid);
    EXPECT_EQ(TrainedBy(hybrid), TrainedBy(cluster));
  }
}

// Wide & Deep with momentum, at the end of epochs with uneven batches.
TEST_F(StrategiesTest, AModelOfBothEndsWithTheBitsOfASynchronousCluster) {
  job::Job job = RatingsJob(1);
  job.mutable_optimizer()->clear_kind();
  job.mutable_optimizer()->mutable_sgd()->set_momentum(0.9);
  job.mutable_optimizer()->mutable_sgd()->set_learning_rate(0.05);
  job.mutable_train()->set_batch_size(700);
  job.mutable_end()->clear_steps();
  job.mutable_end()->set_epochs(3);
  FillDefaults(job);
  for (const int replicas : {1, 2, 3}) {
    SCOPED_TRACE(replicas);
    const std::string cluster = absl::StrCat("cluster", replicas),
                      hybrid = absl::StrCat("hybrid", replicas);
    TrainInCluster(job, replicas, RatingsDirectory(), cluster);
    TrainByBoth(job, replicas, RatingsDirectory(), hybrid);
    EXPECT_EQ(TrainedBy(hybrid), TrainedBy(cluster));
  }
}

// Lists of none to six items, of which four are steps.
TEST_F(StrategiesTest, AModelOfSequencesEndsWithTheBitsOfASynchronousCluster) {
  job::Job job = RatingsJob(60);
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"pb(
        input {
          name: "seen"
          ids {
            column {
              name: "seen"
              identity { num_ids: 60 }
            }
            sequence { length: 4 }
          }
        }
        sparse_table {
          name: "items"
          width: 6
          initializer { random_normal { stddev: 0.3 } }
        }
        layer {
          name: "rows"
          embedding { table: "items" }
        }
        layer {
          name: "read"
          input: "rows"
          input: "seen.mask"
          gru { units: 5 return_sequences: true }
        }
        layer {
          name: "look"
          input: "read"
          input: "rows"
          input: "seen.mask"
          multi_head_attention { num_heads: 2 key_dim: 3 masked: true }
        }
        layer {
          name: "mean"
          input: "look"
          input: "seen.mask"
          global_average_pool1d {}
        }
        layer { dense { units: 1 } }
        loss { binary_crossentropy {} }
      )pb",
      job.mutable_model()));
  FillDefaults(job);
  for (const int replicas : {1, 3}) {
    SCOPED_TRACE(replicas);
    const std::string cluster = absl::StrCat("cluster", replicas),
                      mirrored = absl::StrCat("mirrored", replicas),
                      workers = absl::StrCat("workers", replicas);
    TrainInCluster(job, replicas, RatingsDirectory(), cluster);
    const Trained want = TrainedBy(cluster);
    EXPECT_NE(want, InitialOf(cluster));
    TrainAlone(job, absl::StrCat("mirrored { ", DevicesOf(replicas), " }"),
               RatingsDirectory(), mirrored);
    EXPECT_EQ(TrainedBy(mirrored), want);
    TrainByWorkers(job, replicas, RatingsDirectory(), workers);
    EXPECT_EQ(TrainedBy(workers), want);
  }
}

// Four replicas, however many of them a worker has.
TEST_F(StrategiesTest, SeveralDevicesInEachWorkerEndWithTheBitsOfOneProcess) {
  TrainAlone(ImageJob(), absl::StrCat("mirrored { ", DevicesOf(4), " }"),
             QuadrantsDirectory(), "mirrored");
  const Trained want = TrainedBy("mirrored");
  TrainInCluster(ImageJob(), 4, QuadrantsDirectory(), "cluster");
  EXPECT_EQ(TrainedBy("cluster"), want);
  for (const auto& [workers, devices] :
       std::vector<std::pair<int, int>>{{4, 1}, {2, 2}, {1, 4}}) {
    for (const auto communication :
         {job::MultiWorkerMirrored::AUTO, job::MultiWorkerMirrored::RING}) {
      const std::string run =
          absl::StrCat(workers, "x", devices, "_", communication);
      SCOPED_TRACE(run);
      job::Job job = ImageJob();
      job::MultiWorkerMirrored& strategy =
          *job.mutable_strategy()->mutable_multi_worker_mirrored();
      strategy.set_communication(communication);
      // Several packs leave while others are computed.
      strategy.set_bytes_per_pack(100);
      ListDevices(devices, strategy);
      FillDefaults(job);
      TrainByWorkers(job, workers, QuadrantsDirectory(), run);
      EXPECT_EQ(TrainedBy(run), want);
    }
  }
}

TEST_F(StrategiesTest, SeveralDevicesWithTablesEndWithTheBitsOfOneProcess) {
  for (const int micro_batch : {0, 5}) {
    SCOPED_TRACE(micro_batch);
    const auto run = [micro_batch](const std::string& name) {
      return absl::StrCat(name, micro_batch);
    };
    job::Job job = RatingsJob(100);
    if (micro_batch > 0) {
      job.mutable_train()->set_micro_batch_size(micro_batch);
    }
    TrainAlone(job, absl::StrCat("mirrored { ", DevicesOf(4), " }"),
               RatingsDirectory(), run("mirrored"));
    const Trained want = TrainedBy(run("mirrored"));
    job::Job of_workers = job;
    ListDevices(
        2, *of_workers.mutable_strategy()->mutable_multi_worker_mirrored());
    FillDefaults(of_workers);
    TrainByWorkers(of_workers, 2, RatingsDirectory(), run("workers"));
    EXPECT_EQ(TrainedBy(run("workers")), want);
    job::Job of_both = job;
    ListDevices(
        2, *of_both.mutable_strategy()->mutable_hybrid()->mutable_all_reduce());
    TrainByBoth(of_both, 2, RatingsDirectory(), run("both"));
    EXPECT_EQ(TrainedBy(run("both")), want);
  }
}

TEST_F(StrategiesTest, OneReplicaIsWhatAPlainLoopIs) {
  // In file order: the readers of a plain loop and of a replica shuffle apart.
  job::Job job = ImageJob();
  job.mutable_train()->set_shuffle_buffer(0);
  job.mutable_model()->mutable_layer(4)->mutable_dropout()->set_rate(0);
  TrainAlone(job, "default {}", QuadrantsDirectory(), "default");
  TrainAlone(job, "one_device { device: '/cpu:0' }", QuadrantsDirectory(),
             "one");
  EXPECT_EQ(TrainedBy("one"), TrainedBy("default"));
  TrainAlone(job, "mirrored { device: 'cpu:0' }", QuadrantsDirectory(),
             "mirrored");
  EXPECT_EQ(TrainedBy("mirrored"), TrainedBy("default"));
}

TEST_F(StrategiesTest, AJobGoesOnUnderAnotherStrategy) {
  job::Job half = ImageJob();
  half.mutable_end()->clear_epochs();
  job::Job whole = half;
  half.mutable_end()->set_steps(9);
  whole.mutable_end()->set_steps(20);
  const std::string mirrored = absl::StrCat("mirrored { ", DevicesOf(2), " }");
  TrainInCluster(whole, 2, QuadrantsDirectory(), "whole");
  TrainAlone(half, mirrored, QuadrantsDirectory(), "first");
  TrainInCluster(whole, 2, QuadrantsDirectory(), "first");
  EXPECT_EQ(TrainedBy("first"), TrainedBy("whole"));
  TrainInCluster(half, 2, QuadrantsDirectory(), "second");
  TrainAlone(whole, mirrored, QuadrantsDirectory(), "second");
  EXPECT_EQ(TrainedBy("second"), TrainedBy("whole"));
  TrainAlone(half, mirrored, QuadrantsDirectory(), "third");
  TrainByWorkers(whole, 2, QuadrantsDirectory(), "third");
  EXPECT_EQ(TrainedBy("third"), TrainedBy("whole"));
  TrainByWorkers(half, 2, QuadrantsDirectory(), "fourth");
  TrainInCluster(whole, 2, QuadrantsDirectory(), "fourth");
  EXPECT_EQ(TrainedBy("fourth"), TrainedBy("whole"));
}

TEST_F(StrategiesTest, AJobWithTablesGoesOnFromAndToBoth) {
  const job::Job half = RatingsJob(60), whole = RatingsJob(140);
  const std::string mirrored = absl::StrCat("mirrored { ", DevicesOf(2), " }");
  TrainInCluster(whole, 2, RatingsDirectory(), "whole");
  const Trained want = TrainedBy("whole");

  TrainByBoth(half, 2, RatingsDirectory(), "to_cluster");
  TrainInCluster(whole, 2, RatingsDirectory(), "to_cluster");
  EXPECT_EQ(TrainedBy("to_cluster"), want);
  TrainByBoth(half, 2, RatingsDirectory(), "to_mirrored");
  TrainAlone(whole, mirrored, RatingsDirectory(), "to_mirrored");
  EXPECT_EQ(TrainedBy("to_mirrored"), want);
  TrainByBoth(half, 2, RatingsDirectory(), "to_workers");
  TrainByWorkers(whole, 2, RatingsDirectory(), "to_workers");
  EXPECT_EQ(TrainedBy("to_workers"), want);

  TrainInCluster(half, 2, RatingsDirectory(), "from_cluster");
  TrainByBoth(whole, 2, RatingsDirectory(), "from_cluster");
  EXPECT_EQ(TrainedBy("from_cluster"), want);
  TrainAlone(half, mirrored, RatingsDirectory(), "from_mirrored");
  TrainByBoth(whole, 2, RatingsDirectory(), "from_mirrored");
  EXPECT_EQ(TrainedBy("from_mirrored"), want);
  TrainByWorkers(half, 2, RatingsDirectory(), "from_workers");
  TrainByBoth(whole, 2, RatingsDirectory(), "from_workers");
  EXPECT_EQ(TrainedBy("from_workers"), want);
}

// The program of TensorFlow's guide: one weight and one bias learn 1 = w + b.
TEST_F(StrategiesTest, TheGuidesProgramHasItsFigureUnderEveryStrategy) {
  const fs::path data = fs::path(getenv("TEST_TMPDIR")) / "guide";
  fs::create_directories(data);
  std::ofstream ones(data / "ones.csv");
  ones << "x,y\n";
  for (int i = 0; i < 100; ++i) ones << "1,1\n";
  ones.close();
  job::Job job = *ParseJob(R"(
      model {
        input { name: "x" dense { column { name: "x" } } }
        layer {
          dense {
            units: 1
            kernel_initializer { constant { value: -0.6926207 } }
          }
        }
        loss { mean_squared_error {} }
      }
      train {
        csv { file: "ones.csv" label { column: "y" } }
        global_batch_size: 10
      }
      eval { csv { file: "ones.csv" } batch_size: 10 }
      optimizer { sgd { learning_rate: 0.01 } }
      end { epochs: 2 }
  )",
                           "guide.textproto");
  FillDefaults(job);
  for (const std::string strategy :
       {"default {}", "one_device { device: 'cpu:0' }",
        "mirrored { device: 'cpu:0' device: 'cpu:1' }",
        "central_storage { device: 'cpu:0' device: 'cpu:1' }"}) {
    const std::string run = strategy.substr(0, strategy.find(' '));
    SCOPED_TRACE(run);
    TrainAlone(job, strategy, data, run);
    EXPECT_EQ(Newest(run)->manifest().global_step(), 20);
    std::ifstream lines(Directory(run) / "evaluations.jsonl");
    EXPECT_NEAR(nlohmann::json::parse(lines)["loss"].get<double>(), .5597171783,
                1e-6);
  }
}

TEST_F(StrategiesTest, AGlobalBatchThatCannotBeSplitIsRefused) {
  job::Job job = ImageJob();
  job.mutable_train()->clear_batch_size();
  job.mutable_train()->set_global_batch_size(10);
  EXPECT_THAT(
      SetReplicas(3, job),
      StatusIs(absl::StatusCode::kInvalidArgument,
               testing::HasSubstr("10 examples can't be split into 3")));
  ASSERT_OK(SetReplicas(2, job));
  EXPECT_EQ(job.train().batch_size(), 5);
}

}  // namespace
}  // namespace parasol
