#include "worker/step/granted_steps.h"

#include <vector>

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

wire::ClaimStepsRequest Told(GrantedSteps& steps) {
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
  Told(steps);
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

wire::RegisterRequest Registration(GrantedSteps& steps) {
  wire::RegisterRequest request;
  steps.Tell(request);
  return request;
}

// Returns the batches that a registration tells, in the order of their steps.
std::vector<int64_t> BatchesIn(const wire::RegisterRequest& request) {
  std::vector<int64_t> batches;
  for (const wire::BatchRange& range : request.batch()) {
    for (int64_t i = 0; i < range.count(); ++i) {
      batches.push_back(range.first() + i);
    }
  }
  return batches;
}

TEST(GrantedStepsTest, ARegistrationTellsTheBatchesOfAllStepsToTheGrant) {
  GrantedSteps steps;
  steps.Take(Answer(2, 0, 100, 2));
  steps.TryStart();
  steps.TryStart();
  steps.Complete();
  steps.Complete();
  steps.Take(Answer(5, 2, 200, 5));
  steps.TryStart();
  const wire::RegisterRequest told = Registration(steps);
  EXPECT_EQ(told.steps_before_batches(), 0);
  EXPECT_THAT(BatchesIn(told), ElementsAre(100, 101, 200, 201, 202))
      << "done, in flight, and what may be started meanwhile";
}

TEST(GrantedStepsTest, BatchesOfStepsInACheckpointAreForgotten) {
  GrantedSteps steps;
  steps.Take(Answer(4, 0, 100, 4));
  for (int i = 0; i < 4; ++i) steps.TryStart();
  steps.Complete();
  steps.Complete();
  steps.Complete();
  wire::ClaimStepsResponse answer = Answer(4, 3, 103, 1);
  answer.set_saved_steps(2);
  steps.Take(answer);
  EXPECT_EQ(Registration(steps).steps_before_batches(), 2);
  EXPECT_THAT(BatchesIn(Registration(steps)), ElementsAre(102, 103));
  Told(steps);
  answer.set_saved_steps(int64_t{1} << 60);
  steps.Take(answer);
  EXPECT_EQ(Registration(steps).steps_before_batches(), 4);
  EXPECT_THAT(BatchesIn(Registration(steps)), IsEmpty());
}

// The chief before may have been stopped with a claim, and answers it late.
TEST(GrantedStepsTest, AnAnswerToAClaimBeforeARegistrationIsNotTaken) {
  GrantedSteps steps;
  steps.Take(Answer(1, 0, 100, 1));
  Told(steps);
  EXPECT_THAT(BatchesIn(Registration(steps)), ElementsAre(100));
  EXPECT_FALSE(steps.Take(Answer(5, 0, 100, 5)));
  EXPECT_EQ(steps.held(), 1);
  Told(steps);
  EXPECT_TRUE(steps.Take(Answer(0, 0, 0, 0, /*version=*/8)));
}

TEST(GrantedStepsTest, TheOldestBatchesGoIfThereAreTooManyRanges) {
  GrantedSteps steps;
  constexpr int64_t kSteps = GrantedSteps::kMaxKept + 5;
  for (int64_t step = 0; step < kSteps; ++step) {
    steps.Take(Answer(step + 1, step, 2 * step, 1));
    steps.TryStart();
    steps.Complete();
  }
  const wire::RegisterRequest told = Registration(steps);
  EXPECT_EQ(told.steps_before_batches(), 5);
  EXPECT_EQ(told.batch_size(), GrantedSteps::kMaxKept);
  EXPECT_EQ(told.batch(0).first(), 10);
}

}  // namespace
}  // namespace parasol
