// Jobs whose models read sparse tables, with all roles in one process.

#include <bit>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/status_matchers.h"
#include "cluster/checkpoint/model/evaluated_model.h"
#include "cluster/rows/row_sample.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/device/device.h"
#include "ml/evaluation/model_evaluation.h"
#include "ml/model/graph.h"
#include "ml/model/model.h"
#include "storage/checkpoint_reader.h"
#include "storage/checkpoint_store.h"
#include "storage/durable_file.h"
#include "storage/event_histogram.h"
#include "tests/cluster/cluster_runs.h"
#include "tests/cluster/ratings.h"
#include "tests/cluster/test_cluster.h"
#include "worker/lone_training.h"
#include "worker/store/parameter_store.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

job::Job SynchronousJob(int64_t steps) {
  job::Job job = RatingsJob(steps);
  MakeSynchronous({.aggregate = 2, .total = 2}, job);
  return job;
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
        job, {.data_dir = RatingsDirectory(), .compute = {.device = "cpu"}});
    EXPECT_OK(model);
    const CheckpointStore store(Directory(run));
    EXPECT_OK((*model)->Load(store.PathOf(store.ListSteps()->back())));
    const auto evaluated = (*model)->Run([] { return false; });
    EXPECT_OK(evaluated);
    return evaluated->loss;
  }
};

// The values of the rows of a table that a sample has, of a checkpoint's rows
// with slots.
std::vector<float> SampledValues(
    const std::map<uint64_t, std::vector<float>>& rows, size_t width) {
  RowSample sample(width);
  for (const auto& [id, row] : rows) sample.Add(id);
  std::vector<float> values;
  for (const uint64_t id : sample.Ids()) {
    const std::vector<float>& row = rows.at(id);
    values.insert(values.end(), row.begin(), row.begin() + width);
  }
  return values;
}

// A coin's is .693.
constexpr double kLearned = .25;

TEST_F(TablesTest, AnAsynchronousJobLearnsAndCountsEachStepOnce) {
  EXPECT_LT(Train(RatingsJob(600), "async", 2, 2), kLearned);
  for (const auto& [table, updates] : ReadTrained(*Newest("async")).updates) {
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
  const Trained want = ReadTrained(*Newest("two"));
  Train(SynchronousJob(400), "one", 2, 1);
  EXPECT_EQ(ReadTrained(*Newest("one")), want);
  Train(SynchronousJob(400), "three", 1, 3);
  EXPECT_EQ(ReadTrained(*Newest("three")), want);
}

TEST_F(TablesTest, SoDoRunsWhoseValuesAreKeptInBfloat16) {
  job::Job job = SynchronousJob(400);
  for (job::SparseTable& table : *job.mutable_model()->mutable_sparse_table()) {
    table.set_values(job::SparseTable::BFLOAT16);
  }
  EXPECT_LT(Train(job, "two", 2, 2), kLearned);
  const Trained want = ReadTrained(*Newest("two"));
  Train(job, "three", 1, 3);
  EXPECT_EQ(ReadTrained(*Newest("three")), want);
  // Whoever loads a checkpoint goes on with the same bits.
  Train(job, "restart", 2, 2, [](TestCluster& cluster) {
    ASSERT_OK(cluster.AwaitStep(20));
    cluster.StopPs(1).IgnoreError();
    ASSERT_OK(cluster.StartPs(1));
  });
  EXPECT_EQ(ReadTrained(*Newest("restart")), want);
}

// The ps load the newest checkpoint: none of them goes on with float32.
TEST_F(TablesTest, ARunningJobMayGoOverToValuesInBfloat16) {
  job::Job job = RatingsJob(1000000);
  TestCluster cluster(job, /*num_ps=*/2, /*num_workers=*/1,
                      Directory("changed"));
  cluster.SetDataDirectory(RatingsDirectory());
  ASSERT_OK(cluster.Start());
  ASSERT_OK(cluster.AwaitStep(300));
  ASSERT_OK_AND_ASSIGN(const wire::JobStatus before, cluster.Status());
  EXPECT_THAT(cluster.StopChief(), StatusIs(absl::StatusCode::kCancelled));
  for (job::SparseTable& table : *job.mutable_model()->mutable_sparse_table()) {
    table.set_values(job::SparseTable::BFLOAT16);
  }
  job.mutable_end()->set_steps(before.global_step() + 1500);
  cluster.SetJob(job);
  ASSERT_OK(cluster.StartChief());
  const auto starts_again = StatusIs(absl::StatusCode::kUnavailable);
  EXPECT_THAT(cluster.WaitForWorker(0), starts_again);
  EXPECT_THAT(cluster.WaitForEvaluator(), starts_again);
  cluster.StopWorker(0).IgnoreError();
  ASSERT_OK(cluster.StartWorker(0));
  ASSERT_OK(cluster.StartEvaluator());
  EXPECT_OK(cluster.WaitForChief());
  EXPECT_LT(EvaluatedLoss(job, "changed"), kLearned);
  const Trained trained = ReadTrained(*Newest("changed"));
  for (const job::SparseTable& table : job.model().sparse_table()) {
    SCOPED_TRACE(table.name());
    for (const auto& [id, row] : trained.tables.at(table.name())) {
      for (int64_t i = 0; i < table.width(); ++i) {
        ASSERT_EQ(std::bit_cast<uint32_t>(row[i]) & 0xffff, 0u) << row[i];
      }
    }
  }
}

TEST_F(TablesTest, TheEvaluatorFindsWhatALoneWorkerFinds) {
  const job::Job job = RatingsJob(100);
  const double evaluated = Train(job, "evaluated", 2, 1);
  auto device = *Device::Open("cpu");
  const Graph graph = *ResolveGraph(job.model());
  auto model = *Model::Create(graph, *device);
  auto parameters = *ParameterStore::Create(model->variables(), job);
  ASSERT_OK(parameters->Restore(*Newest("evaluated")));
  for (size_t i = 0; i < model->variables().size(); ++i) {
    ASSERT_OK(parameters->Pull({{i, model->HostValue(i)}})->Wait());
    ASSERT_OK(model->Upload(i));
  }
  const auto evaluation = *ModelEvaluation::Open(job.model(), graph, job.eval(),
                                                 RatingsDirectory());
  const auto found = evaluation->Run(
      {model.get()},
      [&](absl::Span<const StagedBatch::Rows> tables) {
        TrainingParameters::PullRequest pull;
        for (const StagedBatch::Rows& rows : tables) {
          pull.rows.push_back({rows.table, rows.ids, rows.values});
        }
        return parameters->Pull(pull)->Wait();
      },
      [] { return false; });
  ASSERT_OK(found);
  EXPECT_EQ(found->loss, evaluated);
}

// Of the evaluator and of a lone worker, each of its own run.
TEST_F(TablesTest, HistogramsOfRowsAreOfTheCheckpointsRows) {
  job::Job job = RatingsJob(50);
  job.set_tensorboard(true);
  job.set_tensorboard_histograms(true);
  Train(job, "cluster", 2, 1);
  job.mutable_checkpoint()->set_directory(Directory("alone"));
  MetricsRegistry metrics;
  LoneTraining alone({.trainer = {.job = job,
                                  .graph = *ResolveGraph(job.model()),
                                  .replicas = {.devices = {"cpu"}},
                                  .data_dir = RatingsDirectory()}},
                     Clock::Real(), metrics);
  ASSERT_OK(alone.Run());
  for (const std::string run : {"cluster", "alone"}) {
    SCOPED_TRACE(run);
    const std::string directory = Directory(run) / "tensorboard/eval";
    ASSERT_OK_AND_ASSIGN(const auto names, ListDirectory(directory));
    ASSERT_EQ(names.size(), 1u);
    ASSERT_OK_AND_ASSIGN(const std::string events,
                         ReadFile(directory + "/" + names[0], 10 << 20));
    const Trained trained = ReadTrained(*Newest(run));
    for (const job::SparseTable& table : job.model().sparse_table()) {
      const std::vector<float> values =
          SampledValues(trained.tables.at(table.name()), table.width());
      EXPECT_GT(values.size(), 50u * table.width());
      EXPECT_THAT(events, HasSubstr(table.name() + "/rows"));
      EXPECT_THAT(events, HasSubstr(HistogramBytes(HistogramOf(values))));
    }
  }
}

}  // namespace
}  // namespace parasol
