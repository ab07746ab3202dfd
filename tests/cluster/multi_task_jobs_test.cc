// Jobs whose models have several named outputs: the same under every strategy,
// with labels that examples lack.

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "cluster/job/defaults.h"
#include "cluster/job/job_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "storage/checkpoint_reader.h"
#include "tests/cluster/strategy_runs.h"
#include "tests/cluster/test_cluster.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;

using Json = nlohmann::json;

constexpr int kUsers = 40;
constexpr int kItems = 60;

// Users like items of their own parity and buy some of those; only a purchase
// has an amount.
void WriteVisits(const fs::path& path, int examples, uint32_t seed) {
  std::mt19937 random(seed);
  std::ofstream out(path);
  out << "user,item,mood,likes,buys,amount\n";
  for (int i = 0; i < examples; ++i) {
    const int user = random() % kUsers, item = random() % kItems;
    const double mood = (random() % 1000) / 1000.;
    const bool likes = (user + item) % 2 == 0;
    const bool buys = likes && item % 3 == 0;
    out << user << "," << item << "," << mood << "," << likes << "," << buys
        << ",";
    if (buys) out << mood + user / 40.;
    out << "\n";
  }
}

std::string VisitsDirectory() {
  static const auto* const directory = new std::string([] {
    const fs::path path = fs::path(getenv("TEST_TMPDIR")) / "visits";
    fs::create_directories(path);
    WriteVisits(path / "train.csv", 4000, 1);
    WriteVisits(path / "eval.csv", 500, 2);
    return path.string();
  }());
  return *directory;
}

constexpr char kJob[] = R"(
    name: "visits"
    seed: 3
    model {
      input { name: "mood" dense { column { name: "mood" } } }
      input {
        name: "ids"
        ids {
          column { name: "user" identity { num_ids: 40 } }
          column { name: "item" identity { num_ids: 60 } }
        }
      }
      sparse_table {
        name: "rows"
        width: 8
        initializer { random_normal { stddev: 0.3 } }
      }
      layer { name: "embedding" input: "ids" embedding { table: "rows" } }
      layer { name: "flat" flatten {} }
      layer { name: "both" input: "flat" input: "mood" concatenate {} }
      layer { name: "experts" dense { units: 32 activation: RELU } }
      layer { name: "expert_rows" reshape { shape: [4, 8] } }
      layer { name: "gate" input: "both" dense { units: 4 activation: SOFTMAX } }
      layer { name: "mixture" input: ["gate", "expert_rows"] weighted_sum {} }
      layer { name: "likes" dense { units: 1 activation: SIGMOID } }
      layer { name: "buys" input: "experts" dense { units: 1 activation: SIGMOID } }
      layer { name: "buys_of_all" input: ["likes", "buys"] multiply {} }
      layer { name: "amount" input: "experts" dense { units: 1 } }
      output {
        name: "likes"
        label { column: "likes" }
        loss { binary_crossentropy { from_logits: false } }
      }
      output {
        name: "bought"
        layer: "buys_of_all"
        weight: 2
        label { column: "buys" }
        loss {
          binary_crossentropy { from_logits: false }
          class_weight { class: 1 weight: 3 }
        }
      }
      output {
        name: "buys"
        weight: 0
        label { column: "buys" }
        mask: "likes"
        loss { binary_crossentropy { from_logits: false } }
      }
      output {
        name: "amount"
        weight: 0.25
        label { column: "amount" }
        loss { mean_squared_error {} }
        metric { root_mean_squared_error {} }
        metric { mean_label {} }
      }
    }
    train { csv { file: "train.csv" } batch_size: 32 }
    eval { csv { file: "eval.csv" } batch_size: 100 }
    optimizer { adam { learning_rate: 0.01 } }
    checkpoint { every_steps: 100 }
)";

job::Job VisitsJob(int64_t steps) {
  absl::StatusOr<job::Job> job = ParseJob(kJob, "visits.textproto");
  EXPECT_OK(job.status());
  job->mutable_end()->set_steps(steps);
  FillDefaults(*job);
  return *std::move(job);
}

class MultiTaskJobsTest : public StrategyRunsTest {
 protected:
  // The lines of a file beside the run's checkpoints.
  static std::vector<Json> Lines(const std::string& run,
                                 const std::string& file) {
    std::ifstream in(Directory(run) / file);
    std::vector<Json> lines;
    for (std::string line; std::getline(in, line);) {
      lines.push_back(Json::parse(line));
    }
    return lines;
  }
};

TEST_F(MultiTaskJobsTest, EveryStrategyEndsWithTheBitsOfASynchronousCluster) {
  const job::Job job = VisitsJob(60);
  TrainInCluster(job, 2, VisitsDirectory(), "cluster");
  const Trained want = TrainedBy("cluster");
  TrainAlone(job, absl::StrCat("mirrored { ", DevicesOf(2), " }"),
             VisitsDirectory(), "mirrored");
  EXPECT_EQ(TrainedBy("mirrored"), want);
  TrainByWorkers(job, 2, VisitsDirectory(), "workers");
  EXPECT_EQ(TrainedBy("workers"), want);
  TrainByBoth(job, 2, VisitsDirectory(), "hybrid");
  EXPECT_EQ(TrainedBy("hybrid"), want);
  // Each output has a part in it.
  for (const int output : {0, 1, 3}) {
    job::Job other = job;
    other.mutable_model()->mutable_output(output)->set_weight(.5);
    TrainAlone(other, absl::StrCat("mirrored { ", DevicesOf(2), " }"),
               VisitsDirectory(), absl::StrCat("other", output));
    EXPECT_NE(TrainedBy(absl::StrCat("other", output)), want) << output;
  }
}

// Only 1/6 of the examples have an amount: the mean is over all amounts of the
// whole batch, however it is cut.
TEST_F(MultiTaskJobsTest, MicroBatchesMakeTheStepsOfTheWholeBatch) {
  job::Job job = VisitsJob(20);
  job.mutable_optimizer()->clear_kind();
  job.mutable_optimizer()->mutable_sgd()->set_learning_rate(.125);
  FillDefaults(job);
  TrainAlone(job, "default {}", VisitsDirectory(), "whole");
  const Trained want = TrainedBy("whole");
  const Json evaluated = Lines("whole", "evaluations.jsonl").back();
  for (const int micro_batch : {1, 7}) {
    SCOPED_TRACE(micro_batch);
    job.mutable_train()->set_micro_batch_size(micro_batch);
    const std::string run = absl::StrCat("micro", micro_batch);
    TrainAlone(job, "default {}", VisitsDirectory(), run);
    const Trained got = TrainedBy(run);
    for (const auto& [name, values] : want.variables) {
      SCOPED_TRACE(name);
      EXPECT_THAT(got.variables.at(name),
                  testing::Pointwise(testing::FloatNear(1e-5), values));
    }
    for (const char* result : {"loss", "likes/loss", "amount/loss"}) {
      EXPECT_NEAR(Lines(run, "evaluations.jsonl").back()[result].get<double>(),
                  evaluated[result].get<double>(), 1e-5);
    }
  }
}

TEST_F(MultiTaskJobsTest, EvaluationsHaveEachOutputsLossAndMetrics) {
  job::Job job = VisitsJob(400);
  job.mutable_checkpoint()->mutable_keep_best()->set_metric("buys/auc");
  job.mutable_evaluation()->set_every_steps(100);
  FillDefaults(job);
  EXPECT_EQ(job.checkpoint().keep_best().mode(), job::MAX);
  TrainAlone(job, "default {}", VisitsDirectory(), "alone");
  const std::vector<Json> lines = Lines("alone", "evaluations.jsonl");
  ASSERT_EQ(lines.size(), 4u);
  const Json& last = lines.back();
  // What it learns of it: all is a function of user, item and mood.
  EXPECT_GT(last["likes/auc"].get<double>(), .95);
  EXPECT_GT(last["likes/accuracy"].get<double>(), .85);
  EXPECT_GT(last["bought/auc"].get<double>(), .9);
  EXPECT_GT(last["buys/auc"].get<double>(), .8);
  EXPECT_LT(last["amount/root_mean_squared_error"].get<double>(), .3);
  // Without those that buy nothing.
  EXPECT_GT(last["amount/mean_label"].get<double>(), .5);
  const double sum = last["likes/loss"].get<double>() +
                     2 * last["bought/loss"].get<double>() +
                     .25 * last["amount/loss"].get<double>();
  EXPECT_NEAR(last["loss"].get<double>(), sum, 1e-6);
  EXPECT_NEAR(last["amount/loss"].get<double>(),
              std::pow(last["amount/root_mean_squared_error"].get<double>(), 2),
              1e-6);
  EXPECT_TRUE(fs::exists(Directory("alone") / "BEST"));
  const std::vector<Json> training = Lines("alone", "training.jsonl");
  ASSERT_FALSE(training.empty());
  for (const char* output : {"likes", "bought", "buys", "amount"}) {
    EXPECT_TRUE(training.back()[absl::StrCat(output, "/loss")].is_number());
  }
}

TEST_F(MultiTaskJobsTest, AClustersEvaluatorAndChiefNameTheOutputs) {
  // Long enough for workers to report losses.
  job::Job job = VisitsJob(3000);
  {
    TestCluster cluster(job, /*num_ps=*/2, /*num_workers=*/2,
                        Directory("async").string());
    cluster.SetDataDirectory(VisitsDirectory());
    ASSERT_OK(cluster.Start());
    ASSERT_OK(cluster.WaitForChief());
    EXPECT_OK(cluster.WaitForEvaluator());
    EXPECT_THAT(cluster.metrics().Text(),
                testing::HasSubstr("parasol_evaluator_bought_auc_ratio "));
  }
  const Json last = Lines("async", "evaluations.jsonl").back();
  EXPECT_EQ(last["global_step"], 3000);
  EXPECT_TRUE(last["bought/auc"].is_number());
  EXPECT_TRUE(last["amount/loss"].is_number());
  // A chief writes the last line when it ends.
  const std::vector<Json> training = Lines("async", "training.jsonl");
  ASSERT_FALSE(training.empty());
  EXPECT_TRUE(training.back()["amount/loss"].is_number());
}

}  // namespace
}  // namespace parasol
