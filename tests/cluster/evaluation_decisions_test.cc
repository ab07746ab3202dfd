// What a cluster does by the evaluations of its checkpoints: chief, ps, workers
// and evaluator together, in one process.

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_matchers.h"
#include "cluster/checkpoint/evaluation_log.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "storage/checkpoint_reader.h"
#include "storage/checkpoint_store.h"
#include "storage/durable_file.h"
#include "tests/cluster/test_cluster.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;

using ::testing::HasSubstr;

constexpr int64_t kFarEnd = int64_t{1} << 40;

// A job that goes on for ever unless an evaluation ends it. No value improves
// on the first one by a million.
job::Job EndlessJob(int patience) {
  job::Job job = QuadrantsJob(kFarEnd);
  job.mutable_checkpoint()->clear_every_steps();
  job.mutable_checkpoint()->set_every_seconds(0.2);
  job::EarlyStopping& policy = *job.mutable_end()->mutable_early_stopping();
  policy.set_metric("accuracy");
  policy.set_mode(job::MAX);
  policy.set_patience(patience);
  policy.set_min_delta(1e6);
  return job;
}

class EvaluationDecisionsTest : public testing::Test {
 protected:
  EvaluationDecisionsTest()
      : checkpoints_(
            fs::path(getenv("TEST_TMPDIR")) /
            testing::UnitTest::GetInstance()->current_test_info()->name()),
        store_(checkpoints_) {}

  durable::CheckpointManifest NewestManifest() const {
    return *store_.ReadManifest(store_.ListSteps()->back());
  }
  std::vector<Evaluation> Evaluations() const {
    const auto steps = store_.ListSteps();
    if (!steps.ok() || steps->empty()) return {};
    const auto manifest = store_.ReadManifest(steps->back());
    if (!manifest.ok()) return {};
    return *ReadEvaluations(checkpoints_, manifest->run_id());
  }
  // Blocks until there are so many evaluations.
  void AwaitEvaluations(size_t count) const {
    const absl::Time deadline = Clock::Real().Now() + absl::Minutes(1);
    while (Evaluations().size() < count) {
      ASSERT_LT(Clock::Real().Now(), deadline);
      Clock::Real().Pause(absl::Milliseconds(20));
    }
  }
  std::vector<float> Kernel(int64_t step) const {
    std::vector<float> kernel(64 * 32);
    const auto checkpoint = CheckpointReader::Open(store_.PathOf(step));
    EXPECT_OK((*checkpoint)
                  ->ReadElements("hidden/kernel", kValueArray, 0,
                                 absl::MakeSpan(kernel)));
    return kernel;
  }
  void ExpectEndsEarly(TestCluster& cluster, int num_ps, int num_workers) {
    ASSERT_OK(cluster.Start());
    ExpectAllEndWell(cluster, num_ps, num_workers);
  }
  void ExpectAllEndWell(TestCluster& cluster, int num_ps, int num_workers) {
    EXPECT_OK(cluster.WaitForChief());
    for (int i = 0; i < num_ps; ++i) EXPECT_OK(cluster.WaitForPs(i));
    for (int i = 0; i < num_workers; ++i) EXPECT_OK(cluster.WaitForWorker(i));
    EXPECT_OK(cluster.WaitForEvaluator());
    EXPECT_TRUE(NewestManifest().final());
    EXPECT_LT(NewestManifest().global_step(), kFarEnd);
  }

  const fs::path checkpoints_;
  const CheckpointStore store_;
};

TEST_F(EvaluationDecisionsTest, AsynchronousTrainingEndsEarly) {
  TestCluster cluster(EndlessJob(2), 2, 2, checkpoints_);
  ExpectEndsEarly(cluster, 2, 2);
  EXPECT_GE(Evaluations().size(), 4u);
}

TEST_F(EvaluationDecisionsTest, SynchronousTrainingEndsEarly) {
  job::Job job = EndlessJob(2);
  job.mutable_parameter_server()->clear_asynchronous();
  job.mutable_parameter_server()->mutable_synchronous();
  TestCluster cluster(job, 2, 3, checkpoints_);
  ExpectEndsEarly(cluster, 2, 3);
}

TEST_F(EvaluationDecisionsTest, WorkersWithoutPsEndEarly) {
  TestCluster cluster(EndlessJob(2), 0, 3, checkpoints_);
  ExpectEndsEarly(cluster, 0, 3);
}

TEST_F(EvaluationDecisionsTest, AChiefThatRestartsKnowsWhatWasEvaluated) {
  TestCluster cluster(EndlessJob(4), 1, 1, checkpoints_);
  ASSERT_OK(cluster.Start());
  AwaitEvaluations(3);
  EXPECT_THAT(cluster.StopChief(), StatusIs(absl::StatusCode::kCancelled));
  ASSERT_OK(cluster.StartChief());
  ExpectAllEndWell(cluster, 1, 1);
}

TEST_F(EvaluationDecisionsTest, TheBestCheckpointStaysAndIsNamed) {
  job::Job job = EndlessJob(5);
  job.mutable_checkpoint()->set_max_to_keep(3);
  // Longer than it takes until the chief hears of an evaluation.
  job.mutable_checkpoint()->set_every_seconds(1);
  // The loss falls all the time.
  job.mutable_optimizer()->mutable_sgd()->set_learning_rate(1e-5);
  job.mutable_checkpoint()->mutable_keep_best()->set_metric("loss");
  // The first one is the worst.
  job.mutable_checkpoint()->mutable_keep_best()->set_mode(job::MAX);
  TestCluster cluster(job, 1, 1, checkpoints_);
  ExpectEndsEarly(cluster, 1, 1);
  const auto bytes = ReadFile(checkpoints_ / "BEST", 1000);
  ASSERT_OK(bytes);
  const auto best = nlohmann::json::parse(*bytes);
  EXPECT_EQ(best["metric"], "loss");
  const auto steps = *store_.ListSteps();
  // One may have been about to be evaluated when the last one was written.
  EXPECT_GE(steps.size(), 4u);
  EXPECT_LE(steps.size(), 5u);
  EXPECT_EQ(steps.front(), best["global_step"].get<int64_t>());
  for (const Evaluation& evaluation : Evaluations()) {
    if (evaluation.global_step == 0) continue;
    EXPECT_LE(evaluation.loss, best["value"].get<double>());
  }
}

TEST_F(EvaluationDecisionsTest, TheReducedRateReachesThePs) {
  job::Job job = EndlessJob(6);
  job.mutable_optimizer()->mutable_sgd()->set_learning_rate(0.01);
  job::ReduceOnPlateau& policy =
      *job.mutable_optimizer()->mutable_reduce_on_plateau();
  policy.set_metric("accuracy");
  policy.set_mode(job::MAX);
  // No value changes by the new rate.
  policy.set_factor(1e-20);
  policy.set_patience(1);
  policy.set_min_delta(1e6);
  TestCluster cluster(job, 2, 2, checkpoints_);
  ExpectEndsEarly(cluster, 2, 2);
  EXPECT_LT(NewestManifest().reduced_learning_rate(), 1e-20);
  EXPECT_EQ(NewestManifest().job().optimizer().sgd().learning_rate(), 0.01);
  const auto steps = *store_.ListSteps();
  ASSERT_GE(steps.size(), 2u);
  EXPECT_GT(steps.back(), steps[steps.size() - 2]);
  EXPECT_EQ(Kernel(steps.back()), Kernel(steps[steps.size() - 2]));
}

TEST_F(EvaluationDecisionsTest, WorkersWithoutPsRefuseToReduceTheRate) {
  job::Job job = EndlessJob(2);
  job.mutable_optimizer()->mutable_reduce_on_plateau()->set_metric("loss");
  TestCluster cluster(job, 0, 1, checkpoints_);
  EXPECT_THAT(cluster.StartChief(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("optimizer.reduce_on_plateau: strategy "
                                 "multi_worker_mirrored")));
}

}  // namespace
}  // namespace parasol
