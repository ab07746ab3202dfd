// The roles together, in one process.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "cluster/job/defaults.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "storage/checkpoint_reader.h"
#include "storage/checkpoint_store.h"
#include "tests/cluster/test_cluster.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

class ClusterTest : public testing::Test {
 protected:
  ClusterTest()
      : checkpoints_(
            fs::path(getenv("TEST_TMPDIR")) /
            testing::UnitTest::GetInstance()->current_test_info()->name()) {}

  // The last line of the evaluator's file.
  nlohmann::json LastEvaluation() const {
    std::ifstream in(checkpoints_ / "evaluations.jsonl");
    std::string line, last;
    while (std::getline(in, line)) last = line;
    return nlohmann::json::parse(last);
  }
  durable::CheckpointManifest NewestManifest() const {
    const CheckpointStore store(checkpoints_);
    const auto steps = store.ListSteps();
    return *store.ReadManifest(steps->back());
  }

  const fs::path checkpoints_;
};

TEST_F(ClusterTest, AJobTrainsToItsEndAndEveryTaskEndsWell) {
  TestCluster cluster(QuadrantsJob(400), /*num_ps=*/2, /*num_workers=*/2,
                      checkpoints_);
  ASSERT_OK(cluster.Start());
  EXPECT_OK(cluster.WaitForChief());
  EXPECT_OK(cluster.WaitForPs(0));
  EXPECT_OK(cluster.WaitForPs(1));
  EXPECT_OK(cluster.WaitForWorker(0));
  EXPECT_OK(cluster.WaitForWorker(1));
  EXPECT_OK(cluster.WaitForEvaluator());

  const durable::CheckpointManifest manifest = NewestManifest();
  EXPECT_EQ(manifest.global_step(), 400);
  EXPECT_TRUE(manifest.final());
  const nlohmann::json evaluation = LastEvaluation();
  EXPECT_EQ(evaluation["global_step"], 400);
  EXPECT_GT(evaluation["accuracy"].get<double>(), 0.95);
}

// What nobody trains follows the batches: the evaluation uses it.
TEST_F(ClusterTest, BatchNormalizationLearnsWhatTheEvaluatorUses) {
  job::Job job = QuadrantsJob(400);
  job::Layer& normalization = *job.mutable_model()->add_layer();
  normalization.set_name("normalization");
  normalization.mutable_batch_normalization()->set_momentum(0.9);
  job::Layer& dropout = *job.mutable_model()->add_layer();
  dropout.set_name("dropout");
  dropout.mutable_dropout()->set_rate(0.2);
  // Behind the hidden layer.
  auto& layers = *job.mutable_model()->mutable_layer();
  const int last = layers.size() - 1;
  layers.SwapElements(last - 2, last);
  layers.SwapElements(last - 2, last - 1);
  FillDefaults(job);
  TestCluster cluster(job, /*num_ps=*/2, /*num_workers=*/2, checkpoints_);
  ASSERT_OK(cluster.Start());
  EXPECT_OK(cluster.WaitForChief());
  EXPECT_OK(cluster.WaitForEvaluator());
  EXPECT_GT(LastEvaluation()["accuracy"].get<double>(), 0.95);

  const CheckpointStore store(checkpoints_);
  ASSERT_OK_AND_ASSIGN(
      const auto checkpoint,
      CheckpointReader::Open(store.PathOf(store.ListSteps()->back())));
  std::vector<float> mean(32);
  EXPECT_OK(checkpoint->ReadElements("normalization/moving_mean", kValueArray,
                                     0, absl::MakeSpan(mean)));
  EXPECT_THAT(mean, testing::Contains(testing::Gt(0.1f)));
}

TEST_F(ClusterTest, TasksMayStartInAnyOrder) {
  TestCluster cluster(QuadrantsJob(50), 2, 1, checkpoints_);
  ASSERT_OK(cluster.StartEvaluator());
  ASSERT_OK(cluster.StartWorker(0));
  ASSERT_OK(cluster.StartPs(1));
  ASSERT_OK(cluster.StartPs(0));
  ASSERT_OK(cluster.StartChief());
  EXPECT_OK(cluster.WaitForChief());
  EXPECT_OK(cluster.WaitForWorker(0));
}

TEST_F(ClusterTest, TheChiefNamesThePsThatIsAwaited) {
  TestCluster cluster(QuadrantsJob(50), 2, 1, checkpoints_);
  ASSERT_OK(cluster.StartChief());
  ASSERT_OK(cluster.StartPs(0));
  ASSERT_OK(cluster.AwaitPhase(wire::WAITING_FOR_PS));
  ASSERT_OK_AND_ASSIGN(const wire::JobStatus status, cluster.Status());
  EXPECT_THAT(status.missing_task(), testing::Contains("ps/1"));
  ASSERT_OK(cluster.StartPs(1));
  ASSERT_OK(cluster.StartWorker(0));
  EXPECT_OK(cluster.WaitForChief());
}

TEST_F(ClusterTest, AWorkerMayLeaveAndAnotherMayCome) {
  TestCluster cluster(QuadrantsJob(3000), 1, 2, checkpoints_);
  ASSERT_OK(cluster.Start());
  ASSERT_OK(cluster.AwaitStep(200));
  EXPECT_THAT(cluster.StopWorker(0), StatusIs(absl::StatusCode::kCancelled));
  ASSERT_OK(cluster.StartWorker(0));
  EXPECT_OK(cluster.WaitForChief());
  EXPECT_OK(cluster.WaitForWorker(0));
  EXPECT_EQ(NewestManifest().global_step(), 3000);
}

TEST_F(ClusterTest, AShardThatRestartsIsLoadedFromTheNewestCheckpoint) {
  TestCluster cluster(QuadrantsJob(3000), 2, 2, checkpoints_);
  ASSERT_OK(cluster.Start());
  ASSERT_OK(cluster.AwaitStep(300));
  EXPECT_THAT(cluster.StopPs(1), StatusIs(absl::StatusCode::kCancelled));
  ASSERT_OK(cluster.StartPs(1));
  EXPECT_OK(cluster.WaitForChief());
  EXPECT_OK(cluster.WaitForWorker(0));
  EXPECT_OK(cluster.WaitForWorker(1));
  EXPECT_OK(cluster.WaitForEvaluator());
  EXPECT_GT(LastEvaluation()["accuracy"].get<double>(), 0.95);
}

TEST_F(ClusterTest, AChiefThatRestartsFindsItsTasksAndTheirSteps) {
  TestCluster cluster(QuadrantsJob(3000), 2, 2, checkpoints_);
  ASSERT_OK(cluster.Start());
  ASSERT_OK(cluster.AwaitStep(300));
  ASSERT_OK_AND_ASSIGN(const wire::JobStatus before, cluster.Status());
  EXPECT_THAT(cluster.StopChief(), StatusIs(absl::StatusCode::kCancelled));
  ASSERT_OK(cluster.StartChief());
  ASSERT_OK(cluster.AwaitPhase(wire::TRAINING));
  ASSERT_OK(cluster.AwaitStep(before.global_step()));
  ASSERT_OK_AND_ASSIGN(const wire::JobStatus after, cluster.Status());
  EXPECT_EQ(after.run_id(), before.run_id());
  EXPECT_OK(cluster.WaitForChief());
  EXPECT_OK(cluster.WaitForWorker(1));
  EXPECT_EQ(NewestManifest().run_id(), before.run_id());
}

TEST_F(ClusterTest, TheSameSeedDrawsTheSameValuesOnAnyNumberOfShards) {
  std::vector<std::vector<float>> values;
  for (const int num_ps : {1, 3}) {
    const fs::path directory =
        checkpoints_.string() + absl::StrCat("_", num_ps);
    job::Job job = QuadrantsJob(1);
    job.mutable_parameter_server()->mutable_fixed_shards()->set_shards(num_ps);
    TestCluster cluster(job, num_ps, 1, directory);
    ASSERT_OK(cluster.Start());
    ASSERT_OK(cluster.WaitForChief());
    const CheckpointStore store(directory);
    ASSERT_OK_AND_ASSIGN(auto initial, CheckpointReader::Open(store.PathOf(0)));
    std::vector<float>& kernel = values.emplace_back(64 * 32);
    ASSERT_OK(initial->ReadElements("hidden/kernel", kValueArray, 0,
                                    absl::MakeSpan(kernel)));
  }
  EXPECT_EQ(values[0], values[1]);
}

TEST_F(ClusterTest, AWorkerWithoutItsDataEndsTheJobByName) {
  job::Job job = QuadrantsJob(100);
  job.mutable_train()->mutable_idx()->set_images("nowhere");
  TestCluster cluster(job, 1, 1, checkpoints_);
  ASSERT_OK(cluster.Start());
  EXPECT_THAT(
      cluster.WaitForChief(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               testing::AllOf(HasSubstr("worker/0"), HasSubstr("nowhere"))));
  EXPECT_THAT(cluster.WaitForWorker(0),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(cluster.WaitForPs(0),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

}  // namespace
}  // namespace parasol
