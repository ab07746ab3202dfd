#include "coordinator/steps/replica_plan.h"

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

wire::ClaimStepsResponse AnswerOf(ReplicaPlan& plan, uint64_t worker) {
  wire::ClaimStepsRequest claim;
  claim.mutable_task()->set_incarnation(worker);
  wire::ClaimStepsResponse response;
  plan.Answer(claim, 0, 1, response);
  return response;
}

TEST(ReplicaPlan, TheLargestReportIsTheClustersStep) {
  ReplicaPlan plan(2, 1, std::nullopt);
  plan.SetEnd(10);
  plan.Enter(7, {0});
  plan.Enter(8, {0});
  plan.Report(7, 4);
  plan.Report(8, 3);
  EXPECT_EQ(plan.global_step(), 4);
  EXPECT_FALSE(plan.IsComplete());
  plan.Report(8, 10);
  EXPECT_TRUE(plan.IsComplete());
}

TEST(ReplicaPlan, AnAnswerTellsReplicasTheirVersionAndTheEnd) {
  ReplicaPlan plan(2, 100, std::nullopt);
  plan.Enter(7, {0});
  EXPECT_EQ(AnswerOf(plan, 7).end_step(), 0);
  plan.SetEnd(10);
  const wire::ClaimStepsResponse alone = AnswerOf(plan, 7);
  EXPECT_THAT(alone.replica(), ElementsAre(0, 1));
  EXPECT_EQ(alone.end_step(), 10);
  plan.Enter(8, {0});
  EXPECT_THAT(AnswerOf(plan, 7).replica(), ElementsAre(0));
  EXPECT_THAT(AnswerOf(plan, 8).replica(), ElementsAre(1));
  EXPECT_GT(AnswerOf(plan, 7).assignment_version(), alone.assignment_version());
}

TEST(ReplicaPlan, ALimitIsToldAsTheEndAndIsNone) {
  ReplicaPlan plan(2, 1, std::nullopt);
  plan.SetEnd(10);
  plan.Enter(7, {0});
  plan.Enter(8, {0});
  const int64_t before = plan.news();
  plan.SetLimit(4);
  EXPECT_NE(plan.news(), before);
  EXPECT_EQ(AnswerOf(plan, 7).end_step(), 4);
  plan.Report(7, 4);
  EXPECT_FALSE(plan.IsComplete());
  const int64_t at_limit = plan.news();
  plan.SetLimit(8);
  EXPECT_NE(plan.news(), at_limit);
  EXPECT_EQ(AnswerOf(plan, 7).end_step(), 8);
  plan.SetLimit(100);
  EXPECT_EQ(AnswerOf(plan, 7).end_step(), 10);
  plan.SetLimit(std::nullopt);
  EXPECT_EQ(AnswerOf(plan, 7).end_step(), 10);
  EXPECT_EQ(plan.end_step(), 10);
}

TEST(ReplicaPlan, AllMakeAStepThatOneHasBegunBeforeItHeardOfTheLimit) {
  ReplicaPlan plan(2, 1, std::nullopt);
  plan.SetEnd(10);
  plan.Enter(7, {0});
  plan.Enter(8, {0});
  plan.Report(7, 3);
  plan.SetLimit(0);
  EXPECT_EQ(AnswerOf(plan, 8).end_step(), 3);
  const int64_t before = plan.news();
  plan.ReportPushed(7, 4);
  EXPECT_NE(plan.news(), before);
  EXPECT_EQ(AnswerOf(plan, 8).end_step(), 4);
}

TEST(ReplicaPlan, AnEarlyEndIsBeyondALimit) {
  ReplicaPlan plan(2, 1, std::nullopt);
  plan.SetEnd(10);
  plan.Enter(7, {0});
  plan.Report(7, 4);
  plan.SetLimit(4);
  plan.EndEarly();
  EXPECT_EQ(AnswerOf(plan, 7).end_step(), 5);
}

TEST(ReplicaPlan, AResumedRunStartsAtItsCheckpointAndHearsWhatWasDoneSince) {
  ReplicaPlan plan(2, 1, 50);
  plan.Enter(7, {1000000});
  EXPECT_EQ(plan.global_step(), 50) << "the end is not known";
  plan.SetEnd(100);
  plan.Enter(7, {57});
  EXPECT_EQ(plan.global_step(), 57);
}

TEST(ReplicaPlan, AReportBeyondTheEndIsRefused) {
  ReplicaPlan plan(2, 1, 50);
  plan.SetEnd(100);
  plan.Enter(7, {57});
  EXPECT_OK(plan.Check(7, 100, 0));
  EXPECT_THAT(plan.Check(7, 101, 0),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(plan.Check(7, -1, 0),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST(ReplicaPlan, ANewRunDoesNotHearOfAnothersSteps) {
  ReplicaPlan plan(2, 1, std::nullopt);
  plan.SetEnd(1000);
  plan.Enter(7, {500});
  plan.Report(7, 501);
  EXPECT_EQ(plan.global_step(), 0);
  EXPECT_THAT(AnswerOf(plan, 7).replica(), IsEmpty());
  plan.Enter(8, {0});
  plan.Release(8);
  plan.Enter(8, {3});
  EXPECT_EQ(plan.global_step(), 0) << "there may be no variables yet";
  plan.Report(8, 3);
  EXPECT_EQ(plan.global_step(), 3) << "of this run, though unheard";
}

TEST(ReplicaPlan, AWorkerThatIsBehindIsNamedOnceAnotherOneHasWaited) {
  ReplicaPlan plan(2, 1, std::nullopt);
  plan.SetEnd(1000);
  for (const uint64_t worker : {7, 8, 9}) plan.Enter(worker, {0});
  plan.Report(7, 5);
  // 9 has no replica, and 8 is not behind but reported before 7 did.
  plan.ReportPushed(8, 4);
  plan.ReportPushed(7, 6);
  EXPECT_THAT(plan.Awaited(), IsEmpty());
  for (int i = 0; i < 20; ++i) plan.ReportPushed(7, 6);
  EXPECT_THAT(plan.Awaited(), ElementsAre(8));
  plan.ReportPushed(8, 6);
  EXPECT_THAT(plan.Awaited(), IsEmpty());
  plan.ReportPushed(8, 5);
  EXPECT_THAT(plan.Awaited(), ElementsAre(8)) << "it was given another replica";
  plan.Report(8, 6);
  EXPECT_THAT(plan.Awaited(), IsEmpty());
}

TEST(ReplicaPlan, OneThatIsGoneIsNotAwaited) {
  ReplicaPlan plan(2, 1, std::nullopt);
  plan.SetEnd(1000);
  plan.Enter(7, {0});
  plan.Enter(8, {0});
  for (int i = 0; i < 20; ++i) plan.ReportPushed(7, 1);
  EXPECT_THAT(plan.Awaited(), ElementsAre(8));
  plan.Release(8);
  EXPECT_THAT(plan.Awaited(), IsEmpty());
  plan.ReportPushed(8, 0);
  EXPECT_THAT(plan.Awaited(), IsEmpty());
}

// Makes the worker hear of the newest assignment and report what it has done
// and pushed.
void Claim(ReplicaPlan& plan, uint64_t worker, int64_t completed,
           int64_t pushed) {
  const int64_t version = AnswerOf(plan, worker).assignment_version();
  plan.Report(worker, completed);
  plan.Hears(worker, version);
  plan.ReportPushed(worker, pushed);
}

TEST(ReplicaPlan, AnEarlyEndIsPushedByAWorkerAndHeardByAll) {
  ReplicaPlan plan(2, 1, std::nullopt);
  plan.SetEnd(10);
  plan.Enter(7, {0});
  plan.Enter(8, {0});
  Claim(plan, 7, 4, 4);
  plan.EndEarly();
  EXPECT_EQ(plan.end_step(), 5);
  Claim(plan, 7, 5, 5);
  EXPECT_FALSE(plan.IsComplete()) << "worker 8 has not heard";
  Claim(plan, 8, 5, 5);
  EXPECT_TRUE(plan.IsComplete());
}

TEST(ReplicaPlan, AnEarlyEndMovesToAStepThatNobodyHasOnlyFound) {
  ReplicaPlan plan(1, 1, std::nullopt);
  plan.SetEnd(10);
  plan.Enter(7, {0});
  Claim(plan, 7, 4, 4);
  plan.EndEarly();
  plan.Release(7);
  plan.Enter(8, {0});
  // It has found step 5 at a ps; others may be behind.
  Claim(plan, 8, 5, 0);
  EXPECT_EQ(plan.end_step(), 6);
  Claim(plan, 8, 6, 6);
  EXPECT_TRUE(plan.IsComplete());
}

// The worker that has done the last step is gone: nobody pushes it again.
TEST(ReplicaPlan, AnEarlyEndAtTheJobsOwnEndStaysThere) {
  ReplicaPlan plan(1, 1, std::nullopt);
  plan.SetEnd(5);
  plan.Enter(7, {0});
  Claim(plan, 7, 4, 5);
  plan.EndEarly();
  EXPECT_EQ(plan.end_step(), 5);
  plan.Release(7);
  plan.Enter(8, {0});
  Claim(plan, 8, 5, 0);
  const int64_t version = AnswerOf(plan, 8).assignment_version();
  Claim(plan, 8, 5, 0);
  EXPECT_EQ(AnswerOf(plan, 8).assignment_version(), version);
  EXPECT_TRUE(plan.IsComplete());
}

}  // namespace
}  // namespace parasol
