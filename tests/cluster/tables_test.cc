// Jobs whose models read sparse tables, with all roles in one process.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "base/status_matchers.h"
#include "cluster/job/defaults.h"
#include "cluster/job/job_file.h"
#include "evaluator/evaluated_model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/device/device.h"
#include "ml/evaluation/model_evaluation.h"
#include "ml/model/graph.h"
#include "ml/model/model.h"
#include "storage/checkpoint_reader.h"
#include "storage/checkpoint_store.h"
#include "tests/cluster/cluster_runs.h"
#include "tests/cluster/test_cluster.h"
#include "worker/local_parameters.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;

constexpr int kUsers = 40;
constexpr int kItems = 60;

void WriteRatings(const fs::path& path, int examples, uint32_t seed) {
  std::mt19937 random(seed);
  std::ofstream out(path);
  out << "user,item,mood,likes\n";
  for (int i = 0; i < examples; ++i) {
    const int user = random() % kUsers, item = random() % kItems;
    const double mood = (random() % 1000) / 1000.;
    // What no sum of one number per user and item says.
    const bool likes = (user + item) % 2 == 0;
    out << user << "," << item << "," << mood << "," << (likes ? 1 : 0) << "\n";
  }
}

// Users like items of their own parity.
std::string RatingsDirectory() {
  static const auto* const directory = new std::string([] {
    const fs::path path = fs::path(getenv("TEST_TMPDIR")) / "ratings";
    fs::create_directories(path);
    WriteRatings(path / "train.csv", 4000, 1);
    WriteRatings(path / "eval.csv", 500, 2);
    return path.string();
  }());
  return *directory;
}

// Wide & Deep in small; the wide part's table has an optimizer of its own.
job::Job RatingsJob(int64_t steps) {
  absl::StatusOr<job::Job> job = ParseJob(R"(
      name: "ratings"
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
          name: "wide"
          width: 1
          initializer { zeros {} }
          optimizer { ftrl { learning_rate: 0.1 } }
        }
        sparse_table {
          name: "deep"
          width: 8
          initializer { random_normal { stddev: 0.3 } }
        }
        layer {
          name: "wide_part"
          input: "ids"
          embedding_bag { table: "wide" use_bias: true }
        }
        layer { name: "rows" input: "ids" embedding { table: "deep" } }
        layer { name: "flat" flatten {} }
        layer { name: "both" input: "flat" input: "mood" concatenate {} }
        layer { name: "hidden" dense { units: 16 activation: RELU } }
        layer { name: "logit" dense { units: 1 } }
        layer { name: "sum" input: "wide_part" input: "logit" add {} }
        loss { binary_crossentropy {} }
      }
      train {
        csv { file: "train.csv" label { column: "likes" } }
        batch_size: 32
      }
      eval {
        csv { file: "eval.csv" label { column: "likes" } }
        batch_size: 100
      }
      optimizer { adam { learning_rate: 0.01 } }
      checkpoint { every_steps: 100 }
  )",
                                          "ratings.textproto");
  EXPECT_OK(job);
  job->mutable_end()->set_steps(steps);
  FillDefaults(*job);
  return *std::move(job);
}

job::Job SynchronousJob(int64_t steps) {
  job::Job job = RatingsJob(steps);
  MakeSynchronous({.aggregate = 2, .total = 2}, job);
  return job;
}

// Everything that training changes, whatever shards hold it.
struct Trained {
  std::map<std::string, std::vector<float>> variables;
  std::map<std::string, std::map<uint64_t, std::vector<float>>> tables;
  // Number of updates that each table has had, at each shard.
  std::map<std::string, std::vector<int64_t>> updates;

  friend bool operator==(const Trained& a, const Trained& b) {
    return a.variables == b.variables && a.tables == b.tables;
  }
};

Trained ReadAll(const CheckpointReader& checkpoint) {
  Trained trained;
  trained.variables = ReadVariables(checkpoint);
  for (const auto& table : checkpoint.manifest().table()) {
    auto& rows = trained.tables[table.name()];
    std::vector<int64_t>& updates = trained.updates[table.name()];
    EXPECT_OK(checkpoint.ReadRows(table.name(), [&](const RowBatch& batch) {
      updates.push_back(batch.updates);
      const size_t floats =
          batch.ids.empty() ? 0 : batch.rows.size() / batch.ids.size();
      for (size_t i = 0; i < batch.ids.size(); ++i) {
        const auto row = batch.rows.subspan(i * floats, floats);
        rows[batch.ids[i]].assign(row.begin(), row.end());
      }
      return absl::OkStatus();
    }));
  }
  return trained;
}

class TablesTest : public ClusterRunsTest {
 protected:
  // Runs the job to its end, and gives the mean loss of its last checkpoint.
  double Train(
      const job::Job& job, const std::string& run, int num_ps, int num_workers,
      const std::function<void(TestCluster&)>& disturb = [](TestCluster&) {}) {
    TestCluster cluster(job, num_ps, num_workers, Directory(run));
    cluster.SetDataDirectory(RatingsDirectory());
    EXPECT_OK(cluster.Start());
    disturb(cluster);
    EXPECT_OK(cluster.WaitForChief());
    EXPECT_OK(cluster.WaitForEvaluator());
    return EvaluatedLoss(job, run);
  }

  double EvaluatedLoss(const job::Job& job, const std::string& run) const {
    auto model = EvaluatedModel::Create(
        job, {.data_dir = RatingsDirectory(), .device = "cpu"});
    EXPECT_OK(model);
    const CheckpointStore store(Directory(run));
    EXPECT_OK((*model)->Load(store.PathOf(store.ListSteps()->back())));
    const auto evaluated = (*model)->Run([] { return false; });
    EXPECT_OK(evaluated);
    return evaluated->loss;
  }
};

// A coin's is .693.
constexpr double kLearned = .25;

TEST_F(TablesTest, AnAsynchronousJobLearnsAndCountsEachStepOnce) {
  EXPECT_LT(Train(RatingsJob(600), "async", 2, 2), kLearned);
  for (const auto& [table, updates] : ReadAll(*Newest("async")).updates) {
    EXPECT_THAT(updates, testing::Each(600)) << table;
  }
}

TEST_F(TablesTest, AJobOfBoundedStalenessLearns) {
  job::Job job = RatingsJob(600);
  job.mutable_parameter_server()->mutable_bounded_staleness()->set_bound(1);
  EXPECT_LT(Train(job, "bounded", 1, 2), kLearned);
}

TEST_F(TablesTest, AShardThatRestartsHasItsRowsAgain) {
  job::Job job = RatingsJob(2000);
  EXPECT_LT(Train(job, "restart", 2, 2,
                  [](TestCluster& cluster) {
                    ASSERT_OK(cluster.AwaitStep(300));
                    EXPECT_THAT(cluster.StopPs(1),
                                StatusIs(absl::StatusCode::kCancelled));
                    ASSERT_OK(cluster.StartPs(1));
                  }),
            kLearned);
}

TEST_F(TablesTest, SynchronousRunsEndWithTheSameBits) {
  EXPECT_LT(Train(SynchronousJob(400), "two", 2, 2), kLearned);
  const Trained want = ReadAll(*Newest("two"));
  Train(SynchronousJob(400), "one", 2, 1);
  EXPECT_EQ(ReadAll(*Newest("one")), want);
  Train(SynchronousJob(400), "three", 1, 3);
  EXPECT_EQ(ReadAll(*Newest("three")), want);
}

TEST_F(TablesTest, TheEvaluatorFindsWhatALoneWorkerFinds) {
  const job::Job job = RatingsJob(100);
  const double evaluated = Train(job, "evaluated", 2, 1);
  auto device = *Device::Open("cpu");
  const Graph graph = *ResolveGraph(job.model());
  auto model = *Model::Create(graph, *device);
  auto parameters = *LocalParameters::Create(model->variables(), job);
  ASSERT_OK(parameters->Restore(*Newest("evaluated")));
  for (size_t i = 0; i < model->variables().size(); ++i) {
    ASSERT_OK(parameters->Pull({{i, model->HostValue(i)}})->Wait());
    ASSERT_OK(model->Upload(i));
  }
  const auto evaluation = *ModelEvaluation::Open(
      job.model(), graph.loss, job.eval(), RatingsDirectory());
  const auto found = evaluation->Run(
      *model,
      [&](absl::Span<const StagedBatch::Rows> tables) {
        ParameterClient::PullRequest pull;
        for (const StagedBatch::Rows& rows : tables) {
          pull.rows.push_back({rows.table, rows.ids, rows.values});
        }
        return parameters->Pull(pull)->Wait();
      },
      [] { return false; });
  ASSERT_OK(found);
  EXPECT_EQ(found->loss, evaluated);
}

}  // namespace
}  // namespace parasol
