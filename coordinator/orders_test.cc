#include "coordinator/orders.h"

#include <optional>

#include "base/status_matchers.h"
#include "coordinator/testing/job_parts.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;

class OrdersTest : public coordinator_testing::JobPartsTest {
 protected:
  // Does what is ordered before the job trains.
  void StartTraining() {
    Start();
    FinishLoad();
    const CheckpointOrder first = NextCheckpoint();
    ASSERT_THAT(CheckpointDone(first, absl::OkStatus()),
                Optional(absl::OkStatus()));
    phases_->Enter(wire::TRAINING, now_);
  }

  std::optional<Order> Next() {
    return orders_->Next(ForOrders(), *board_, now_);
  }
  LoadOrder NextLoad() {
    const std::optional<Order> order = Next();
    const LoadOrder* load = order ? std::get_if<LoadOrder>(&*order) : nullptr;
    if (load != nullptr) return *load;
    ADD_FAILURE() << "no load is ordered";
    return {};
  }
  CheckpointOrder NextCheckpoint() {
    const std::optional<Order> order = Next();
    const CheckpointOrder* checkpoint =
        order ? std::get_if<CheckpointOrder>(&*order) : nullptr;
    if (checkpoint != nullptr) return *checkpoint;
    ADD_FAILURE() << "no checkpoint is ordered";
    return {};
  }
  std::optional<absl::Status> LoadDone(const LoadOrder::Target& target,
                                       const absl::Status& status) {
    return orders_->LoadDone(target, status, *board_, now_);
  }
  void FinishLoad() {
    for (const LoadOrder::Target& target : NextLoad().targets) {
      EXPECT_THAT(LoadDone(target, absl::OkStatus()),
                  Optional(absl::OkStatus()));
    }
  }
  std::optional<absl::Status> CheckpointDone(const CheckpointOrder& order,
                                             const absl::Status& status) {
    return orders_->CheckpointDone(order, status, ForOrders(), *board_, now_);
  }
  // Lets the worker live, and complete so many steps.
  void Train(int64_t steps) {
    if (membership_->CountAlive("worker") == 0) {
      ASSERT_OK(membership_->Register(worker_, {}, now_).status());
      grants_->Enter(worker_, {});
    }
    wire::ClaimStepsRequest claim;
    *claim.mutable_task() = worker_;
    claim.set_want(steps);
    wire::ClaimStepsResponse answer;
    // The first answer says the version of its grants.
    for (int i = 0; i < 2; ++i) {
      claim.set_assignment_version(answer.assignment_version());
      ASSERT_OK(grants_->Take(claim, phases_->phase(), now_));
      grants_->Answer(claim, {.phase = wire::TRAINING, .workers = 1}, now_,
                      answer);
    }
    claim.set_completed_steps(steps);
    claim.set_started_steps(steps);
    ASSERT_OK(grants_->Take(claim, phases_->phase(), now_));
    ASSERT_EQ(grants_->plan().global_step(), steps);
  }
};

TEST_F(OrdersTest, OrdersNothingBeforeAllPsAreThere) {
  Start();
  phases_->Enter(wire::WAITING_FOR_PS, now_);
  EXPECT_FALSE(Next().has_value());
}

TEST_F(OrdersTest, ANewRunIsInitialisedAndHasAFirstCheckpoint) {
  Start();
  const LoadOrder load = NextLoad();
  EXPECT_EQ(load.targets.size(), 2);
  EXPECT_FALSE(load.from_checkpoint);
  FinishLoad();
  const CheckpointOrder first = NextCheckpoint();
  EXPECT_EQ(first.manifest.global_step(), 0);
  EXPECT_EQ(first.manifest.run_id(), "run");
  EXPECT_THAT(first.incarnations, ElementsAre(10, 11));
  EXPECT_FALSE(first.stay);
  EXPECT_THAT(CheckpointDone(first, absl::OkStatus()),
              Optional(absl::OkStatus()));
  EXPECT_THAT(orders_->schedule().newest_step(), Optional(0));
  EXPECT_FALSE(Next().has_value());
}

TEST_F(OrdersTest, ARunThatGoesOnIsLoadedFromItsCheckpoint) {
  Start(30);
  const LoadOrder load = NextLoad();
  EXPECT_TRUE(load.from_checkpoint);
  EXPECT_EQ(load.global_step, 30);
  FinishLoad();
  EXPECT_FALSE(Next().has_value()) << "it has a checkpoint";
}

TEST_F(OrdersTest, ALoadThatFailsIsATroubleAndTriedLater) {
  Start();
  const LoadOrder load = NextLoad();
  EXPECT_EQ(LoadDone(load.targets[1], absl::UnavailableError("gone")),
            std::nullopt);
  EXPECT_EQ(orders_->trouble().text, "can't load ps/1: gone");
  now_ += absl::Minutes(1);
  FinishLoad();
  EXPECT_EQ(orders_->trouble().text, "");
}

TEST_F(OrdersTest, ALoadThatFailsTooOftenEndsTheChiefAndAWrongOneTheJob) {
  Start();
  std::optional<absl::Status> result;
  for (int i = 0; i < ShardLoads::kMaxFailures; ++i) {
    EXPECT_EQ(result, std::nullopt);
    now_ += absl::Minutes(1);
    result = LoadDone({1, 11}, absl::UnavailableError("gone"));
  }
  EXPECT_THAT(result, Optional(StatusIs(absl::StatusCode::kUnavailable)));
  Start();
  EXPECT_THAT(
      LoadDone({1, 11}, absl::InvalidArgumentError("wrong")),
      Optional(StatusIs(absl::StatusCode::kFailedPrecondition, "ps/1: wrong")));
}

TEST_F(OrdersTest, ACheckpointFollowsThePolicy) {
  StartTraining();
  Train(9);
  EXPECT_FALSE(Next().has_value());
  EXPECT_FALSE(orders_->MayHaveNext(ForOrders(), now_));
  Train(10);
  EXPECT_TRUE(orders_->MayHaveNext(ForOrders(), now_));
  const CheckpointOrder order = NextCheckpoint();
  EXPECT_EQ(order.manifest.global_step(), 10);
  EXPECT_FALSE(order.manifest.final());
  EXPECT_FALSE(order.at_one_step);
}

TEST_F(OrdersTest, ACheckpointThatFailsWhileTrainingIsTriedAgain) {
  StartTraining();
  Train(10);
  EXPECT_EQ(CheckpointDone(NextCheckpoint(), absl::UnavailableError("full")),
            std::nullopt);
  EXPECT_THAT(orders_->trouble().text, HasSubstr("full"));
  EXPECT_FALSE(Next().has_value()) << "not at once";
  now_ += absl::Hours(1);
  EXPECT_EQ(CheckpointDone(NextCheckpoint(), absl::UnavailableError("full")),
            std::nullopt)
      << "the job trains on";
  now_ += absl::Hours(1);
  CheckpointDone(NextCheckpoint(), absl::OkStatus());
  EXPECT_EQ(orders_->trouble().text, "");
}

TEST_F(OrdersTest, AFinalCheckpointThatFailsForTooLongEndsTheJob) {
  StartTraining();
  phases_->Enter(wire::FINISHING, now_);
  CheckpointOrder order = NextCheckpoint();
  EXPECT_TRUE(order.manifest.final());
  const absl::Status full = absl::FailedPreconditionError("full");
  EXPECT_EQ(CheckpointDone(order, full), std::nullopt);
  now_ += options_.checkpoint_timeout;
  order = NextCheckpoint();
  const std::optional<absl::Status> end = CheckpointDone(order, full);
  ASSERT_TRUE(end.has_value());
  EXPECT_FALSE(end->ok());
}

TEST_F(OrdersTest, NothingIsOrderedWhenTheJobHasEndedOrTheChiefGivesUp) {
  Start();
  phases_->GiveUp(absl::UnavailableError("waited"));
  EXPECT_FALSE(Next().has_value());
  Start();
  phases_->Enter(wire::COMPLETE, now_);
  EXPECT_FALSE(Next().has_value());
}

TEST_F(OrdersTest, AStopWritesWhatTheNewestCheckpointLacksAndStays) {
  StartTraining();
  Train(5);
  orders_->RequestStop(now_);
  EXPECT_TRUE(orders_->stop_requested());
  EXPECT_FALSE(Next().has_value()) << "the worker holds steps";
  now_ += kLastStepsLimit;
  const CheckpointOrder last = NextCheckpoint();
  EXPECT_EQ(last.manifest.global_step(), 5);
  EXPECT_TRUE(last.stay);
  EXPECT_FALSE(orders_->stopped());
  CheckpointDone(last, absl::OkStatus());
  EXPECT_FALSE(Next().has_value());
  EXPECT_TRUE(orders_->stopped());
}

TEST_F(OrdersTest, AStopWithNothingNewWritesNothing) {
  StartTraining();
  orders_->RequestStop(now_);
  EXPECT_FALSE(Next().has_value());
  EXPECT_TRUE(orders_->stopped());
}

TEST_F(OrdersTest, APsThatLeavesHasACheckpointAfterAMoment) {
  StartTraining();
  Train(5);
  orders_->AskToLeave(11, now_);
  EXPECT_TRUE(orders_->MayHaveNext(ForOrders(), now_));
  EXPECT_FALSE(Next().has_value());
  now_ += kLeaveDelay;
  const CheckpointOrder order = NextCheckpoint();
  EXPECT_TRUE(order.stay);
  EXPECT_FALSE(orders_->leaving().MayLeave(11));
  CheckpointDone(order, absl::OkStatus());
  EXPECT_TRUE(orders_->leaving().MayLeave(11));
}

TEST_F(OrdersTest, ShardsThatStayGoOnWithTheSuccessorOrWhenTheyDidNotStay) {
  StartTraining();
  Train(5);
  orders_->AskToLeave(11, now_);
  now_ += kLeaveDelay;
  CheckpointDone(NextCheckpoint(), absl::OkStatus());
  orders_->Forget(11);
  board_->Lost(1);
  EXPECT_FALSE(Next().has_value());
  board_->Arrived(1, 99, false);
  FinishLoad();
  EXPECT_EQ(NextLoad().targets.size(), 2) << "all are given the job again";
}

TEST_F(OrdersTest, CallsToProcessesThatAreGoneAreInVain) {
  Start();
  const Order load = NextLoad();
  EXPECT_THAT(orders_->InVain(load, ForOrders(), *board_, now_).shards,
              IsEmpty());
  board_->Arrived(1, 99, false);
  EXPECT_THAT(orders_->InVain(load, ForOrders(), *board_, now_).shards,
              ElementsAre(1));
}

TEST_F(OrdersTest, ACutIsInVainWhenNobodyReachesItAnyMore) {
  options_.job.mutable_parameter_server()
      ->mutable_synchronous()
      ->set_replicas_to_aggregate(1);
  options_.job.mutable_parameter_server()
      ->mutable_synchronous()
      ->set_total_replicas(1);
  StartTraining();
  ASSERT_OK(membership_->Register(worker_, {}, now_).status());
  orders_->RequestStop(now_);
  const CheckpointOrder cut = NextCheckpoint();
  EXPECT_TRUE(cut.at_one_step);
  EXPECT_TRUE(cut.may_await);
  EXPECT_FALSE(orders_->InVain(cut, ForOrders(), *board_, now_).awaits_nobody);
  phases_->Enter(wire::FINISHING, now_);
  EXPECT_FALSE(orders_->InVain(cut, ForOrders(), *board_, now_).is_obsolete);
  now_ += kLastReportLimit;
  EXPECT_TRUE(orders_->InVain(cut, ForOrders(), *board_, now_).is_obsolete);
  ASSERT_OK(membership_->Leave(worker_, now_).status());
  EXPECT_TRUE(orders_->InVain(cut, ForOrders(), *board_, now_).awaits_nobody);
}

}  // namespace
}  // namespace parasol
