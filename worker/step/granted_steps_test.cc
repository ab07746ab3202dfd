#include "worker/step/granted_steps.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;

// An answer that grants `granted` steps in all, and names the batches `first`
// and following for the steps after `before`.
wire::ClaimStepsResponse Answer(int64_t granted, int64_t before, int64_t first,
                                int64_t count, int64_t version = 7) {
  wire::ClaimStepsResponse response;
  response.set_assignment_version(version);
  response.set_granted_steps(granted);
  response.set_steps_before_batches(before);
  if (count > 0) {
    wire::BatchRange* range = response.add_batch();
    range->set_first(first);
    range->set_count(count);
  }
  return response;
}

wire::ClaimStepsRequest Told(const GrantedSteps& steps) {
  wire::ClaimStepsRequest request;
  steps.Tell(request);
  return request;
}

TEST(GrantedStepsTest, ABatchBeyondTheGrantIsUpcomingAndNotStarted) {
  GrantedSteps steps;
  EXPECT_FALSE(steps.Take(Answer(1, 0, 100, 3)));
  EXPECT_THAT(steps.TryStart(), Optional(100));
  EXPECT_EQ(steps.TryStart(), std::nullopt);
  EXPECT_THAT(steps.Upcoming(9), ElementsAre(101, 102));
  EXPECT_THAT(steps.Upcoming(1), ElementsAre(101));
}

TEST(GrantedStepsTest, BatchesOfStartedStepsAreNotStartedAgain) {
  GrantedSteps steps;
  steps.Take(Answer(3, 0, 100, 3));
  steps.TryStart();
  steps.TryStart();
  steps.Complete();
  steps.Take(Answer(4, 1, 101, 3));
  EXPECT_THAT(steps.TryStart(), Optional(102));
  EXPECT_THAT(steps.TryStart(), Optional(103));
  EXPECT_EQ(steps.TryStart(), std::nullopt);
}

TEST(GrantedStepsTest, AStepWithoutABatchIsNone) {
  GrantedSteps steps;
  steps.Take(Answer(5, 0, 100, 1));
  EXPECT_EQ(steps.held(), 1);
}

TEST(GrantedStepsTest, AClaimTellsTheTotals) {
  GrantedSteps steps;
  steps.Take(Answer(3, 0, 100, 3));
  steps.TryStart();
  steps.TryStart();
  steps.Complete();
  const wire::ClaimStepsRequest told = Told(steps);
  EXPECT_EQ(told.completed_steps(), 1);
  EXPECT_EQ(told.started_steps(), 2);
  EXPECT_EQ(told.granted_steps(), 3);
  EXPECT_EQ(told.assignment_version(), 7);
}

TEST(GrantedStepsTest, ARegistrationTellsTheTotalAndTheClock) {
  GrantedSteps steps;
  wire::RegisterRequest request;
  steps.Tell(request);
  EXPECT_FALSE(request.has_clock_lead());
  wire::ClaimStepsResponse answer = Answer(1, 0, 100, 1);
  answer.set_clock_lead(-4);
  steps.Take(answer);
  steps.TryStart();
  steps.Complete();
  steps.Take(Answer(1, 0, 100, 1));
  steps.Tell(request);
  EXPECT_EQ(request.completed_steps(), 1);
  EXPECT_EQ(request.clock_lead(), -4);
}

TEST(GrantedStepsTest, AnAnswerOfANewVersionEndsTheOldGrant) {
  GrantedSteps steps;
  steps.Take(Answer(4, 0, 100, 4));
  steps.TryStart();
  steps.TryStart();
  EXPECT_TRUE(steps.Take(Answer(0, 0, 0, 0, /*version=*/8)));
  EXPECT_EQ(steps.TryStart(), std::nullopt);
  EXPECT_THAT(steps.Upcoming(9), IsEmpty());
  EXPECT_EQ(Told(steps).assignment_version(), 8);
  EXPECT_EQ(Told(steps).started_steps(), 2);
  EXPECT_FALSE(steps.Take(Answer(3, 0, 100, 3, 8))) << "the old two, a new one";
  EXPECT_THAT(steps.TryStart(), Optional(102));
}

}  // namespace
}  // namespace parasol
