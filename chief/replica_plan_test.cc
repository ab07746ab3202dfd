#include "chief/replica_plan.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

wire::ClaimStepsResponse AnswerOf(ReplicaPlan& plan, uint64_t worker) {
  wire::ClaimStepsResponse response;
  plan.Answer(worker, 0, 1, response);
  return response;
}

TEST(ReplicaPlan, TheLargestReportIsTheClustersStep) {
  ReplicaPlan plan(2, 1, std::nullopt);
  plan.SetEnd(10);
  plan.Enter(7, 0);
  plan.Enter(8, 0);
  plan.Report(7, 4);
  plan.Report(8, 3);
  EXPECT_EQ(plan.global_step(), 4);
  EXPECT_FALSE(plan.IsComplete());
  plan.Report(8, 10);
  EXPECT_TRUE(plan.IsComplete());
}

TEST(ReplicaPlan, AnAnswerTellsReplicasTheirVersionAndTheEnd) {
  ReplicaPlan plan(2, 100, std::nullopt);
  plan.Enter(7, 0);
  EXPECT_EQ(AnswerOf(plan, 7).end_step(), 0);
  plan.SetEnd(10);
  const wire::ClaimStepsResponse alone = AnswerOf(plan, 7);
  EXPECT_THAT(alone.replica(), ElementsAre(0, 1));
  EXPECT_EQ(alone.end_step(), 10);
  plan.Enter(8, 0);
  EXPECT_THAT(AnswerOf(plan, 7).replica(), ElementsAre(0));
  EXPECT_THAT(AnswerOf(plan, 8).replica(), ElementsAre(1));
  EXPECT_GT(AnswerOf(plan, 7).assignment_version(), alone.assignment_version());
}

TEST(ReplicaPlan, AResumedRunStartsAtItsCheckpointAndHearsWhatWasDoneSince) {
  ReplicaPlan plan(2, 1, 50);
  EXPECT_EQ(plan.global_step(), 50);
  plan.Enter(7, 57);
  EXPECT_EQ(plan.global_step(), 57);
}

TEST(ReplicaPlan, ANewRunDoesNotHearOfAnothersSteps) {
  ReplicaPlan plan(2, 1, std::nullopt);
  plan.Enter(7, 500);
  plan.Report(7, 501);
  EXPECT_EQ(plan.global_step(), 0);
  EXPECT_THAT(AnswerOf(plan, 7).replica(), IsEmpty());
  plan.Enter(8, 0);
  plan.Release(8);
  plan.Enter(8, 3);
  EXPECT_EQ(plan.global_step(), 3) << "of this run, though unheard";
}

}  // namespace
}  // namespace parasol
