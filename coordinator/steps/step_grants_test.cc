#include "coordinator/steps/step_grants.h"

#include <memory>
#include <utility>

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::_;
using ::testing::NiceMock;
using ::testing::Optional;
using ::testing::Return;

class MockPlan : public StepPlan {
 public:
  MOCK_METHOD(void, SetEnd, (int64_t), (override));
  MOCK_METHOD(std::optional<int64_t>, end_step, (), (const, override));
  MOCK_METHOD(void, EndEarly, (), (override));
  MOCK_METHOD(void, SetLimit, (std::optional<int64_t>), (override));
  MOCK_METHOD(absl::Status, Check, (uint64_t, int64_t, int64_t),
              (const, override));
  MOCK_METHOD(void, EnterAt, (uint64_t, int64_t, int));
  void Enter(uint64_t worker, const WorkerArrival& arrival) override {
    EnterAt(worker, arrival.completed, arrival.shard);
  }
  MOCK_METHOD(void, Report, (uint64_t, int64_t), (override));
  MOCK_METHOD(void, ReportPushed, (uint64_t, int64_t), (override));
  MOCK_METHOD(void, Release, (uint64_t), (override));
  MOCK_METHOD(void, Answer,
              (const wire::ClaimStepsRequest&, int64_t, int,
               wire::ClaimStepsResponse&),
              (override));
  MOCK_METHOD(int64_t, news, (), (const, override));
  MOCK_METHOD(int64_t, global_step, (), (const, override));
  MOCK_METHOD(std::vector<durable::WorkerProgress>, Progress, (),
              (const, override));
  MOCK_METHOD(bool, HoldsSteps, (uint64_t), (const, override));
  MOCK_METHOD(bool, MayTell, (), (const, override));
  MOCK_METHOD(std::vector<uint64_t>, Awaited, (), (const, override));
};

wire::Task WorkerAt(int index) {
  wire::Task task;
  task.set_role("worker");
  task.set_index(index);
  task.set_incarnation(20 + index);
  return task;
}

class StepGrantsTest : public testing::Test {
 protected:
  StepGrantsTest() {
    job_.mutable_end()->set_steps(100);
    ON_CALL(*plan_, end_step).WillByDefault(Return(100));
  }

  StepGrants& grants() {
    if (!grants_) grants_.emplace(job_, std::move(owned_plan_), options_);
    return *grants_;
  }
  wire::ClaimStepsRequest ClaimOf(const wire::Task& worker, int64_t completed,
                                  int64_t in_flight = 0) {
    wire::ClaimStepsRequest claim;
    *claim.mutable_task() = worker;
    claim.set_completed_steps(completed);
    claim.set_started_steps(completed + in_flight);
    claim.set_granted_steps(completed + in_flight);
    claim.set_pushed_steps(completed);
    claim.set_want(3);
    return claim;
  }
  // Answers a claim, of which the plan is to hear that `want` steps are wanted.
  void ExpectWant(int64_t want, const StepGrants::Look& look) {
    EXPECT_CALL(*plan_, Answer(_, want, look.workers, _));
    wire::ClaimStepsResponse response;
    grants().Answer(ClaimOf(worker_, 0), look, now_, response);
    EXPECT_EQ(response.phase(), look.phase);
  }

  const wire::Task worker_ = WorkerAt(0);
  const wire::Task other_ = WorkerAt(1);
  absl::Time now_ = absl::FromUnixSeconds(1000000);
  job::Job job_;
  StepGrants::Options options_ = {.places = 2,
                                  .worker_timeout = absl::Minutes(5)};
  const StepGrants::Look training_ = {.phase = wire::TRAINING, .workers = 2};
  std::unique_ptr<NiceMock<MockPlan>> owned_plan_ =
      std::make_unique<NiceMock<MockPlan>>();
  NiceMock<MockPlan>* const plan_ = owned_plan_.get();
  std::optional<StepGrants> grants_;
};

TEST_F(StepGrantsTest, GrantsWhileTheJobTrainsAndTheChiefStays) {
  ExpectWant(0, {.phase = wire::LOADING, .workers = 2});
  ExpectWant(3, training_);
  StepGrants::Look stopping = training_;
  stopping.is_stopping = true;
  ExpectWant(0, stopping);
  ExpectWant(0, {.phase = wire::FINISHING, .workers = 2});
}

TEST_F(StepGrantsTest, ThatGrantsBeginOrEndIsNewsOnce) {
  const int64_t news = grants().news();
  grants().Observe({.phase = wire::LOADING});
  EXPECT_EQ(grants().news(), news);
  grants().Observe(training_);
  EXPECT_NE(grants().news(), news);
  const int64_t training_news = grants().news();
  grants().Observe(training_);
  EXPECT_EQ(grants().news(), training_news);
}

TEST_F(StepGrantsTest, ThePlanHearsOfTheEndAndTheLimit) {
  EXPECT_CALL(*plan_, SetEnd(100));
  StepGrants::Look look = training_;
  look.limit = 10;
  EXPECT_CALL(*plan_, SetLimit(Optional(10)));
  grants().Observe(look);
}

TEST_F(StepGrantsTest, AnEndInEpochsIsKnownWithTheFirstCountOfExamples) {
  job_.mutable_end()->Clear();
  job_.mutable_end()->set_epochs(2);
  job_.mutable_train()->set_batch_size(10);
  EXPECT_CALL(*plan_, SetEnd(20));
  wire::ClaimStepsRequest claim = ClaimOf(worker_, 0);
  claim.set_train_examples(100);
  EXPECT_OK(grants().Take(claim, wire::TRAINING, now_));
  claim.set_train_examples(90);
  EXPECT_THAT(grants().Take(claim, wire::TRAINING, now_),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(StepGrantsTest, TakesNothingOfAClaimThatCanNotBeTrue) {
  EXPECT_CALL(*plan_, Check)
      .WillOnce(Return(absl::FailedPreconditionError("too many")))
      .WillRepeatedly(Return(absl::OkStatus()));
  EXPECT_CALL(*plan_, Report).Times(0);
  wire::ClaimStepsRequest claim = ClaimOf(worker_, 5);
  claim.set_train_examples(1);
  EXPECT_THAT(grants().Take(claim, wire::TRAINING, now_),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_FALSE(grants().end().has_examples());
  EXPECT_FALSE(grants().claims().IsIdle(worker_.incarnation()));
}

TEST_F(StepGrantsTest, NoStepsCountBeforeTheVariablesOfANewRun) {
  EXPECT_CALL(*plan_, Report).Times(0);
  EXPECT_OK(grants().Take(ClaimOf(worker_, 5), wire::LOADING, now_));
  grants().Report(worker_, 5, wire::LOADING);
  testing::Mock::VerifyAndClearExpectations(plan_);
  EXPECT_CALL(*plan_, Report(worker_.incarnation(), 5));
  EXPECT_OK(grants().Take(ClaimOf(worker_, 5), wire::TRAINING, now_));
}

TEST_F(StepGrantsTest, StepsOfARunThatGoesOnAlwaysCount) {
  options_.is_resumed = true;
  EXPECT_CALL(*plan_, Report(worker_.incarnation(), 5));
  EXPECT_OK(grants().Take(ClaimOf(worker_, 5), wire::WAITING_FOR_PS, now_));
}

TEST_F(StepGrantsTest, PushesMoveNoEndThatIsReached) {
  EXPECT_CALL(*plan_, ReportPushed).Times(0);
  EXPECT_OK(grants().Take(ClaimOf(worker_, 5), wire::FINISHING, now_));
}

TEST_F(StepGrantsTest, OnlyTheFirstWorkerCountsWhereWorkersHaveTheVariables) {
  options_.is_mirrored = true;
  EXPECT_CALL(*plan_, EnterAt(other_.incarnation(), 0, 1));
  grants().Enter(other_, {.completed = 7, .shard = 1});
  EXPECT_CALL(*plan_, Report(other_.incarnation(), _)).Times(0);
  EXPECT_OK(grants().Take(ClaimOf(other_, 8), wire::TRAINING, now_));
  EXPECT_CALL(*plan_, EnterAt(worker_.incarnation(), 7, 0));
  grants().Enter(worker_, {.completed = 7});
}

TEST_F(StepGrantsTest, TakesStepsBackAndEntersTheWorkerAnewWithItsShard) {
  grants().Enter(other_, {.shard = 1});
  ON_CALL(*plan_, HoldsSteps).WillByDefault(Return(true));
  wire::ClaimStepsResponse response;
  grants().Answer(ClaimOf(other_, 2, 1), training_, now_, response);
  now_ += options_.worker_timeout;
  EXPECT_CALL(*plan_, Release(other_.incarnation()));
  grants().TakeBack(/*is_training=*/true, now_);
  EXPECT_CALL(*plan_, EnterAt(other_.incarnation(), 3, 1));
  EXPECT_OK(grants().Take(ClaimOf(other_, 3), wire::TRAINING,
                          now_ + absl::Seconds(1)));
}

TEST_F(StepGrantsTest, TakesNothingBackWhileAllWait) {
  ON_CALL(*plan_, HoldsSteps).WillByDefault(Return(true));
  wire::ClaimStepsResponse response;
  grants().Answer(ClaimOf(worker_, 2, 1), training_, now_, response);
  EXPECT_CALL(*plan_, Release).Times(0);
  grants().TakeBack(/*is_training=*/false, now_ + options_.worker_timeout);
}

TEST_F(StepGrantsTest, EndsEarlyOnceThereIsAStep) {
  StepGrants::Look look = training_;
  grants().EndEarly(look);
  look.ends_early = true;
  EXPECT_CALL(*plan_, EndEarly).Times(0);
  grants().EndEarly(look);
  testing::Mock::VerifyAndClearExpectations(plan_);
  ON_CALL(*plan_, global_step).WillByDefault(Return(5));
  EXPECT_CALL(*plan_, EndEarly).Times(1);
  const int64_t news = grants().news();
  grants().EndEarly(look);
  EXPECT_NE(grants().news(), news);
  grants().EndEarly(look);
}

TEST_F(StepGrantsTest, AnEarlyEndAwaitsWorkersThatMayReturnAndTheirSteps) {
  ON_CALL(*plan_, global_step).WillByDefault(Return(5));
  StepGrants::Look look = training_;
  look.ends_early = true;
  look.may_return = true;
  EXPECT_CALL(*plan_, EndEarly).Times(0);
  EXPECT_OK(grants().Take(ClaimOf(worker_, 2), wire::TRAINING, now_));
  EXPECT_OK(grants().Take(ClaimOf(other_, 2, 1), wire::TRAINING, now_));
  EXPECT_TRUE(grants().AwaitsReturns(look)) << "a step is in flight";
  grants().EndEarly(look);
  testing::Mock::VerifyAndClearExpectations(plan_);
  EXPECT_OK(grants().Take(ClaimOf(other_, 3), wire::TRAINING, now_));
  look.workers = 1;
  EXPECT_TRUE(grants().AwaitsReturns(look)) << "one is absent";
  look.workers = 2;
  EXPECT_FALSE(grants().AwaitsReturns(look));
  EXPECT_CALL(*plan_, EndEarly);
  grants().EndEarly(look);
}

TEST_F(StepGrantsTest, BoundedStalenessAwaitsWorkersThatMayReturn) {
  job_.mutable_parameter_server()->mutable_bounded_staleness()->set_bound(1);
  StepGrants::Look look = {
      .phase = wire::TRAINING, .workers = 1, .may_return = true};
  EXPECT_TRUE(grants().AwaitsReturns(look));
  ExpectWant(0, look);
  look.may_return = false;
  EXPECT_FALSE(grants().AwaitsReturns(look));
  ExpectWant(3, look);
}

TEST_F(StepGrantsTest, OtherModesAwaitNobodyWithoutAnEarlyEnd) {
  EXPECT_FALSE(grants().AwaitsReturns(
      {.phase = wire::TRAINING, .workers = 1, .may_return = true}));
}

TEST_F(StepGrantsTest, AsynchronousTrainingAwaitsThoseThatReturnForAMoment) {
  StepGrants::Look look = {.phase = wire::TRAINING,
                           .workers = 1,
                           .may_return = true,
                           .return_now = true};
  EXPECT_TRUE(grants().AwaitsReturns(look)) << "one is absent";
  ExpectWant(0, look);
  look.workers = 2;
  EXPECT_CALL(*plan_, MayTell).WillOnce(Return(true));
  EXPECT_TRUE(grants().AwaitsReturns(look)) << "one has steps in flight";
  EXPECT_CALL(*plan_, MayTell).WillRepeatedly(Return(false));
  EXPECT_FALSE(grants().AwaitsReturns(look));
  look.workers = 1;
  look.return_now = false;
  EXPECT_FALSE(grants().AwaitsReturns(look));
}

TEST(IsNewsTest, AGrantAnAssignmentAnEndAndThePhasesBehindTrainingAreNews) {
  wire::ClaimStepsRequest request;
  wire::ClaimStepsResponse response;
  response.set_phase(wire::TRAINING);
  EXPECT_FALSE(IsNews(request, response));
  response.set_end_step(90);
  EXPECT_FALSE(IsNews(request, response)) << "it has known none";
  request.set_end_step(100);
  EXPECT_TRUE(IsNews(request, response));
  request.set_end_step(90);
  response.set_granted_steps(1);
  EXPECT_TRUE(IsNews(request, response));
  request.set_granted_steps(1);
  response.set_assignment_version(7);
  EXPECT_TRUE(IsNews(request, response));
  request.set_assignment_version(7);
  response.set_phase(wire::FINISHING);
  EXPECT_TRUE(IsNews(request, response));
}

}  // namespace
}  // namespace parasol
