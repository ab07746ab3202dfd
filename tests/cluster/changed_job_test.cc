// A chief that restarts with another job while its tasks live: one job and one
// layout at a time in the whole cluster.

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "storage/checkpoint_reader.h"
#include "storage/checkpoint_store.h"
#include "tests/cluster/test_cluster.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

constexpr int64_t kLong = 1000000;

class ChangedJobTest : public testing::Test {
 protected:
  ChangedJobTest()
      : checkpoints_(
            fs::path(getenv("TEST_TMPDIR")) /
            testing::UnitTest::GetInstance()->current_test_info()->name()) {}

  // The values of both layers' kernels, which are on two shards.
  std::vector<float> NewestKernels() const {
    const CheckpointStore store(checkpoints_);
    const auto checkpoint =
        CheckpointReader::Open(store.PathOf(store.ListSteps()->back()));
    EXPECT_OK(checkpoint);
    std::vector<float> values(64 * 32 + 32 * 4);
    EXPECT_OK((*checkpoint)
                  ->ReadElements("hidden/kernel", kValueArray, 0,
                                 absl::MakeSpan(values).first(64 * 32)));
    EXPECT_OK((*checkpoint)
                  ->ReadElements("logits/kernel", kValueArray, 0,
                                 absl::MakeSpan(values).subspan(64 * 32)));
    return values;
  }

  double LastAccuracy() const {
    std::ifstream in(checkpoints_ / "evaluations.jsonl");
    std::string line, last;
    while (std::getline(in, line)) last = line;
    return nlohmann::json::parse(last)["accuracy"].get<double>();
  }

  static double Distance(const std::vector<float>& a,
                         const std::vector<float>& b) {
    double sum = 0;
    for (size_t i = 0; i < a.size(); ++i) sum += std::abs(a[i] - b[i]);
    return sum;
  }

  // Ends the chief and starts one with `job`; returns the step in between.
  static int64_t RestartChief(TestCluster& cluster, const job::Job& job) {
    const auto before = cluster.Status();
    EXPECT_OK(before);
    EXPECT_THAT(cluster.StopChief(), StatusIs(absl::StatusCode::kCancelled));
    cluster.SetJob(job);
    EXPECT_OK(cluster.StartChief());
    return before->global_step();
  }

  const fs::path checkpoints_;
};

// With a rate of next to nothing, values that still change show a ps with the
// old one.
TEST_F(ChangedJobTest, EveryPsKeepsItsValuesAndTakesOverTheRate) {
  job::Job job = QuadrantsJob(kLong);
  TestCluster cluster(job, /*num_ps=*/2, /*num_workers=*/1, checkpoints_);
  ASSERT_OK(cluster.Start());
  ASSERT_OK(cluster.AwaitPhase(wire::TRAINING));
  const std::vector<float> initial = NewestKernels();
  ASSERT_OK(cluster.AwaitStep(300));
  job.mutable_optimizer()->mutable_adam()->set_learning_rate(1e-30);
  RestartChief(cluster, job);
  const std::vector<float> trained = NewestKernels();
  ASSERT_OK(cluster.AwaitPhase(wire::TRAINING));
  // A chief that knows of no new steps would write no checkpoint at its end.
  ASSERT_OK_AND_ASSIGN(const wire::JobStatus status, cluster.Status());
  ASSERT_OK(cluster.AwaitStep(status.global_step() + 1));
  // The ps applied with the old rate until the new chief reached them: the
  // checkpoint that this chief writes at its end is the first without.
  const int64_t step = RestartChief(cluster, job);
  const std::vector<float> early = NewestKernels();
  ASSERT_OK(cluster.AwaitStep(step + 700));
  EXPECT_THAT(cluster.StopChief(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(NewestKernels(), early);
  EXPECT_GT(Distance(early, initial), Distance(trained, initial) / 2);
}

TEST_F(ChangedJobTest, AWorkerDoesNotTrainOnInAnotherLayout) {
  job::Job job = QuadrantsJob(kLong);
  TestCluster cluster(job, /*num_ps=*/2, /*num_workers=*/1, checkpoints_);
  ASSERT_OK(cluster.Start());
  ASSERT_OK(cluster.AwaitStep(1000));
  job.mutable_parameter_server()->mutable_fixed_shards()->set_shards(2);
  job.mutable_end()->set_steps(4000);
  RestartChief(cluster, job);
  EXPECT_THAT(cluster.WaitForWorker(0),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("placed the variables in another way")));
  cluster.StopWorker(0).IgnoreError();
  ASSERT_OK(cluster.StartWorker(0));
  EXPECT_OK(cluster.WaitForChief());
  EXPECT_OK(cluster.WaitForWorker(0));
  EXPECT_OK(cluster.WaitForEvaluator());
  EXPECT_GT(LastAccuracy(), 0.95);
}

TEST_F(ChangedJobTest, AWorkerOfAnotherBatchSizeStartsAgain) {
  job::Job job = QuadrantsJob(kLong);
  TestCluster cluster(job, /*num_ps=*/1, /*num_workers=*/1, checkpoints_);
  ASSERT_OK(cluster.Start());
  ASSERT_OK(cluster.AwaitStep(100));
  job.mutable_train()->set_batch_size(32);
  RestartChief(cluster, job);
  EXPECT_THAT(cluster.WaitForWorker(0),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("train.batch_size: 16 -> 32")));
  cluster.StopWorker(0).IgnoreError();
  ASSERT_OK(cluster.StartWorker(0));
  ASSERT_OK_AND_ASSIGN(const wire::JobStatus status, cluster.Status());
  ASSERT_OK(cluster.AwaitStep(status.global_step() + 100));
}

// Two epochs of one batch size and one of another are three.
TEST_F(ChangedJobTest, EpochsThatAreDoneCountAsTheyWere) {
  job::Job job = QuadrantsJob(kLong);
  job.mutable_end()->clear_steps();
  job.mutable_end()->set_epochs(2);
  const auto train = [&] {
    TestCluster cluster(job, /*num_ps=*/1, /*num_workers=*/1, checkpoints_);
    EXPECT_OK(cluster.Start());
    EXPECT_OK(cluster.WaitForChief());
    return CheckpointStore(checkpoints_).ListSteps()->back();
  };
  const int64_t first = train();
  job.mutable_end()->set_epochs(3);
  job.mutable_train()->set_batch_size(2 * job.train().batch_size());
  EXPECT_EQ(train() - first, (first / 2 + 1) / 2);
}

// As after a loss of all tasks, of which only the files are left.
TEST_F(ChangedJobTest, PushesInAJournalAreNotLeftOut) {
  using Ps = job::ParameterServerStrategy;
  const fs::path left = checkpoints_.string() + "-left";
  job::Job job = QuadrantsJob(kLong);
  job.mutable_parameter_server()->set_durability(Ps::JOURNAL);
  job.mutable_checkpoint()->set_every_steps(kLong);
  {
    TestCluster cluster(job, /*num_ps=*/2, /*num_workers=*/1, checkpoints_);
    ASSERT_OK(cluster.Start());
    ASSERT_OK(cluster.AwaitStep(300));
    fs::copy(checkpoints_, left, fs::copy_options::recursive);
    EXPECT_THAT(cluster.StopChief(), StatusIs(absl::StatusCode::kCancelled));
  }
  const auto result = [&left](const job::Job& next, int num_ps) {
    TestCluster cluster(next, num_ps, /*num_workers=*/1, left);
    const absl::Status started = cluster.StartChief();
    return started.ok() ? cluster.WaitForChief() : started;
  };
  EXPECT_THAT(result(job, 3), StatusIs(absl::StatusCode::kInvalidArgument,
                                       AllOf(HasSubstr("acknowledged pushes"),
                                             HasSubstr("shard-00000-of-00002"),
                                             HasSubstr("with 2 ps and"))));
  job::Job without = job;
  without.mutable_parameter_server()->set_durability(Ps::CHECKPOINT);
  EXPECT_THAT(result(without, 2), StatusIs(absl::StatusCode::kInvalidArgument,
                                           HasSubstr("durability JOURNAL")));
  TestCluster cluster(job, /*num_ps=*/2, /*num_workers=*/1, left);
  ASSERT_OK(cluster.Start());
  EXPECT_OK(cluster.AwaitPhase(wire::TRAINING));
}

}  // namespace
}  // namespace parasol
