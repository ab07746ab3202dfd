#include "worker/step/shared_steps.h"

#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;

// Takes the replica's next step. Returns false if there is none.
bool Step(SharedStepsOfReplica& replica) {
  const auto share = replica.Await();
  EXPECT_OK(share);
  if (!share->has_value()) return false;
  EXPECT_EQ((*share)->completed_steps, replica.Now()->completed_steps);
  EXPECT_EQ((*share)->end_step, replica.Now()->completed_steps + 1);
  replica.Complete(replica.Now()->completed_steps + 1);
  return true;
}

TEST(SharedStepsTest, AllReplicasEndAfterTheSameStep) {
  bool is_over = false;
  SharedSteps steps(5, [&](int64_t) { return is_over; });
  SharedStepsOfReplica first(0, 5, steps), second(1, 5, steps);
  EXPECT_TRUE(Step(first));
  EXPECT_TRUE(Step(second));
  EXPECT_TRUE(Step(first));
  is_over = true;
  EXPECT_TRUE(Step(second)) << "the other replica computes this step";
  EXPECT_FALSE(Step(second));
  EXPECT_FALSE(Step(first));
  EXPECT_EQ(first.Now()->completed_steps, 7);
  EXPECT_EQ(second.Now()->completed_steps, 7);
}

TEST(SharedStepsTest, TheEndIsFinal) {
  bool is_over = true;
  SharedSteps steps(0, [&](int64_t) { return is_over; });
  SharedStepsOfReplica first(0, 0, steps), second(1, 0, steps);
  EXPECT_FALSE(Step(first));
  is_over = false;
  EXPECT_FALSE(Step(second));
}

TEST(SharedStepsTest, WhetherThereIsAStepIsAskedOncePerStep) {
  std::vector<int64_t> asked;
  SharedSteps steps(0, [&](int64_t completed) {
    asked.push_back(completed);
    return completed == 2;
  });
  SharedStepsOfReplica first(0, 0, steps), second(1, 0, steps);
  while (Step(first)) Step(second);
  EXPECT_FALSE(Step(second));
  EXPECT_THAT(asked, ElementsAre(0, 1, 2));
}

TEST(SharedStepsTest, AReplicaComputesItsOwnShare) {
  SharedSteps steps(0, [](int64_t) { return false; });
  SharedStepsOfReplica replica(3, 0, steps);
  const auto share = replica.Now();
  ASSERT_OK(share);
  EXPECT_THAT(share->replicas, ElementsAre(3));
  EXPECT_EQ(share->completed_steps, 0);
}

TEST(SharedStepsTest, AStoppedReplicaIsCancelled) {
  SharedSteps steps(0, [](int64_t) { return false; });
  SharedStepsOfReplica replica(0, 0, steps);
  replica.Stop();
  EXPECT_THAT(replica.Await(), StatusIs(absl::StatusCode::kCancelled));
}

}  // namespace
}  // namespace parasol
