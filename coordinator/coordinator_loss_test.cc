// Losses at the end of a job, and checkpoints that can't be written.

#include <optional>
#include <string>

#include "base/status_matchers.h"
#include "coordinator/coordinator.h"
#include "coordinator/testing/coordinator_fixture.h"
#include "gmock/gmock.h"

namespace parasol::coordinator_testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;

class EndTest : public CoordinatorTest {
 protected:
  // Lets each attempt at a checkpoint end with `status` until the job or the
  // chief ends, or `limit` has passed.
  void FailCheckpoints(const absl::Status& status, absl::Duration limit) {
    const absl::Time end = now_ + limit;
    while (now_ < end && phase() != wire::FAILED && !outcome()) {
      if (auto order = chief().NextOrder(now_)) {
        CheckpointDone(std::get<CheckpointOrder>(*order), status);
      }
      Pass(absl::Seconds(2), everyone_);
    }
  }
  // As StartTraining(), with synchronous training.
  void StartSynchronousTraining(int replicas) {
    options_.job.mutable_parameter_server()
        ->mutable_synchronous()
        ->set_total_replicas(replicas);
    StartTraining();
  }
  void FinishCheckpoint() {
    CheckpointDone(NextCheckpoint(), absl::OkStatus());
  }
};

TEST_F(EndTest, AFinalCheckpointIsTriedForCheckpointTimeout) {
  StartTraining();
  TrainTo(100);
  const absl::Status closed = absl::PermissionDeniedError("ps/1: closed");
  FailCheckpoints(closed, absl::Minutes(10));
  EXPECT_EQ(phase(), wire::FINISHING);
  EXPECT_EQ(outcome(), std::nullopt);
  FailCheckpoints(closed, absl::Minutes(1));
  EXPECT_EQ(phase(), wire::FAILED);
  for (const wire::Task& task : everyone_) EXPECT_OK(Leave(task));
  EXPECT_THAT(outcome(),
              Optional(StatusIs(absl::StatusCode::kInvalidArgument,
                                AllOf(HasSubstr("step 100"), HasSubstr("10m"),
                                      HasSubstr("ps/1: closed")))));
}

TEST_F(EndTest, APsThatNeverWritesItsPartEndsTheChiefToBeStartedAgain) {
  options_.checkpoint_timeout = absl::Minutes(1);
  StartTraining();
  TrainTo(100);
  FailCheckpoints(absl::UnavailableError("ps/1 is still writing"),
                  absl::Minutes(2));
  EXPECT_EQ(phase(), wire::FINISHING) << "the others wait for the next chief";
  EXPECT_THAT(outcome(), Optional(StatusIs(absl::StatusCode::kUnavailable,
                                           HasSubstr("ps/1 is still"))));
}

TEST_F(EndTest, WhatKeepsACheckpointFromBeingWrittenIsNamed) {
  StartTraining();
  TrainTo(100);
  CheckpointDone(NextCheckpoint(),
                 absl::ResourceExhaustedError("ps/0: disk full"));
  const std::string trouble =
      "no checkpoint of step 100 in 1 attempt: ps/0: disk full";
  EXPECT_EQ(Heartbeat(worker0_)->trouble(), trouble);
  EXPECT_EQ(chief().Status(now_).trouble(), trouble);
  Pass(absl::Seconds(2), everyone_);
  FinishCheckpoint();
  EXPECT_THAT(Heartbeat(worker0_)->trouble(), IsEmpty());
}

TEST_F(EndTest, TroubleOfTrainingIsNotThatOfTheEnd) {
  StartTraining();
  TrainTo(10);
  CheckpointDone(NextCheckpoint(), absl::UnavailableError("x"));
  EXPECT_THAT(chief().Status(now_).trouble(), HasSubstr("step 10"));
  TrainTo(100);
  ASSERT_EQ(phase(), wire::FINISHING);
  EXPECT_THAT(chief().Status(now_).trouble(), IsEmpty());
}

TEST_F(EndTest, APsLostInTheFinalCheckpointCostsNoMoreThanItsReturn) {
  StartTraining();
  TrainTo(100);
  // Before its loss is noticed the attempts fail, and come ever more seldom.
  for (int i = 0; i < 5; ++i) {
    while (!HasOrder()) Pass(absl::Seconds(2), everyone_);
    CheckpointDone(NextCheckpoint(), absl::UnavailableError("ps/1: refused"));
  }
  EXPECT_FALSE(HasOrder());
  ASSERT_OK(Register(Task("ps", 1, 99)));
  ASSERT_OK(Heartbeat(Task("ps", 1, 99)));
  EXPECT_THAT(Heartbeat(worker0_)->loading_shard(), ElementsAre(1));
  const auto load = NextLoad();
  EXPECT_TRUE(load.from_checkpoint);
  FinishLoad(load);
  EXPECT_THAT(Heartbeat(worker0_)->loading_shard(), IsEmpty());
  const auto order = NextCheckpoint();
  EXPECT_TRUE(order.manifest.final());
  EXPECT_EQ(order.manifest.global_step(), 100);
  CheckpointDone(order, absl::OkStatus());
  EXPECT_EQ(phase(), wire::COMPLETE);
}

// A machine that is gone answers no call, and ends no connection.
TEST_F(EndTest, CallsToAPsThatWasReplacedOrLostAreInVain) {
  StartTraining();
  TrainTo(100);
  const auto order = NextCheckpoint();
  EXPECT_THAT(Tick().shards, IsEmpty());
  ASSERT_OK(Register(Task("ps", 1, 99)));
  ASSERT_OK(Heartbeat(Task("ps", 1, 99)));
  EXPECT_THAT(Tick().shards, ElementsAre(1));
  CheckpointDone(order, absl::CancelledError("cancelled"));
  const auto load = NextLoad();
  EXPECT_THAT(Tick().shards, IsEmpty());
  Pass(absl::Minutes(1), {ps0_, worker0_, worker1_});
  EXPECT_THAT(Tick().shards, ElementsAre(1));
}

// The shards that are there wait for a step of workers, and these for the shard
// that is not loaded while the checkpoint lasts.
TEST_F(EndTest, ACheckpointAtOneStepIsInVainWithoutOneOfItsPs) {
  StartSynchronousTraining(/*replicas=*/1);
  ASSERT_OK(Claim(worker0_, 10, 0));
  ASSERT_OK(Claim(worker1_, 10, 0));
  const auto order = NextCheckpoint();
  EXPECT_THAT(Tick().shards, IsEmpty());
  ASSERT_OK(Register(Task("ps", 1, 99)));
  ASSERT_OK(Heartbeat(Task("ps", 1, 99)));
  EXPECT_THAT(Tick().shards, ElementsAre(0, 1));
}

// Two heartbeats were sent before the ps was loaded, and come after.
TEST_F(EndTest, ACheckpointAtOneStepIsInVainForAPsThatHasToBeLoaded) {
  StartSynchronousTraining(/*replicas=*/1);
  ASSERT_OK(Claim(worker0_, 10, 0));
  ASSERT_OK(Claim(worker1_, 10, 0));
  const auto order = NextCheckpoint();
  loaded_.erase(ps1_.incarnation());
  for (int i = 0; i < ShardBoard::kDenials; ++i) ASSERT_OK(Heartbeat(ps1_));
  EXPECT_THAT(Tick().shards, ElementsAre(0, 1));
}

// Training goes on after checkpoints that fail, with long pauses between them.
TEST_F(EndTest, APsThatBeginsToLeaveDoesNotWaitOutAPauseBetweenCheckpoints) {
  StartTraining();
  TrainTo(10);
  for (int i = 0; i < 5; ++i) {
    while (!HasOrder()) Pass(absl::Seconds(2), everyone_);
    CheckpointDone(NextCheckpoint(), absl::UnavailableError("x"));
  }
  EXPECT_FALSE(HasOrder());
  LeavingHeartbeat(ps0_);
  EXPECT_TRUE(HasOrder());
}

TEST_F(EndTest, ASynchronousShardThatIsRestoredAtTheEndGoesIntoTheCheckpoint) {
  StartSynchronousTraining(/*replicas=*/2);
  ASSERT_OK(Claim(worker0_, 100, 0));
  ASSERT_OK(Claim(worker1_, 100, 0));
  ASSERT_EQ(phase(), wire::FINISHING);
  ASSERT_OK(Register(Task("ps", 1, 99)));
  ASSERT_OK(Heartbeat(Task("ps", 1, 99)));
  FinishLoad(NextLoad());
  const auto order = NextCheckpoint();
  EXPECT_EQ(order.manifest.global_step(), 100);
  EXPECT_TRUE(order.at_one_step);
  EXPECT_TRUE(order.may_await) << "the restored shard hears of its step";
}

TEST_F(EndTest, TheLastGradientsOfASynchronousJobAreAwaited) {
  StartSynchronousTraining(/*replicas=*/2);
  ASSERT_OK(Claim(worker1_, 99, 0));
  ASSERT_OK(Claim(worker0_, 100, 0));
  ASSERT_EQ(phase(), wire::FINISHING);
  EXPECT_FALSE(HasOrder());
  ASSERT_OK(Claim(worker1_, 100, 0));
  EXPECT_TRUE(NextCheckpoint().manifest.final());
}

TEST_F(EndTest, AWorkerThatHasLostItsLastGradientIsNotAwaitedForLong) {
  StartSynchronousTraining(/*replicas=*/2);
  ASSERT_OK(Claim(worker1_, 99, 0));
  ASSERT_OK(Claim(worker0_, 100, 0));
  EXPECT_FALSE(HasOrder());
  Pass(kLastReportLimit, everyone_);
  EXPECT_TRUE(NextCheckpoint().manifest.final());
}

TEST_F(EndTest, ACutThatNoWorkerReachesAnyMoreIsGivenUpForTheEnd) {
  StartSynchronousTraining(/*replicas=*/2);
  ASSERT_OK(Claim(worker0_, 50, 0));
  ASSERT_OK(Claim(worker1_, 50, 0));
  const auto cut = NextCheckpoint();
  ASSERT_FALSE(cut.manifest.final());
  ASSERT_OK(Claim(worker0_, 100, 0));
  ASSERT_OK(Claim(worker1_, 100, 0));
  ASSERT_EQ(phase(), wire::FINISHING);
  EXPECT_FALSE(Tick().is_obsolete);
  Pass(kLastReportLimit, everyone_);
  EXPECT_TRUE(Tick().is_obsolete);
  CheckpointDone(cut, absl::CancelledError("cancelled"));
  EXPECT_FALSE(Tick().is_obsolete);
  EXPECT_TRUE(NextCheckpoint().manifest.final());
}

TEST_F(EndTest, AChiefLostAtTheEndOfEpochsLearnsTheEndFromTheNextClaim) {
  options_.job.mutable_end()->clear_steps();
  options_.job.mutable_end()->set_epochs(2);
  options_.job.mutable_train()->set_batch_size(10);
  Resume(12);
  BringBackPs();
  ASSERT_OK(Register(worker0_, "", 20));
  ASSERT_OK(Register(worker1_));
  EXPECT_EQ(phase(), wire::TRAINING);
  ASSERT_OK_AND_ASSIGN(auto claim, Claim(worker0_, 20, 0, /*examples=*/100));
  EXPECT_EQ(claim.phase(), wire::FINISHING);
  FinishCheckpoint();
  EXPECT_EQ(phase(), wire::COMPLETE);
}

TEST_F(EndTest, APsThatIsLeavingGetsACheckpointFirst) {
  StartTraining();
  TrainTo(5);
  EXPECT_FALSE(HasOrder()) << "none is due";
  EXPECT_FALSE(AskToLeave(ps1_).may_leave());
  const auto order = NextCheckpoint();
  EXPECT_EQ(order.manifest.global_step(), 5);
  EXPECT_FALSE(LeavingHeartbeat(ps1_).may_leave());
  CheckpointDone(order, absl::OkStatus());
  EXPECT_TRUE(LeavingHeartbeat(ps1_).may_leave());
  EXPECT_FALSE(HasOrder()) << "one is enough";
}

TEST_F(EndTest, ALeavingPsIsGivenACheckpointOfAStepThatHasOne) {
  StartTraining();
  TrainTo(10);
  FinishCheckpoint();
  // Pushes of a step that is not complete came after it.
  EXPECT_FALSE(AskToLeave(ps1_).may_leave());
  FinishCheckpoint();
  EXPECT_TRUE(LeavingHeartbeat(ps1_).may_leave());
}

TEST_F(EndTest, ACheckpointThatFailsIsTriedAgainForALeavingPs) {
  StartTraining();
  TrainTo(5);
  AskToLeave(ps0_);
  CheckpointDone(NextCheckpoint(), absl::UnavailableError("x"));
  FinishLoad(NextLoad());
  EXPECT_FALSE(LeavingHeartbeat(ps0_).may_leave());
  Pass(absl::Seconds(2), everyone_);
  FinishCheckpoint();
  EXPECT_TRUE(LeavingHeartbeat(ps0_).may_leave());
}

TEST_F(EndTest, APsThatHasLeftIsNotWaitedForWithACheckpoint) {
  StartTraining();
  TrainTo(5);
  LeavingHeartbeat(ps1_);
  ASSERT_OK(Leave(ps1_));
  ASSERT_OK(Register(Task("ps", 1, 99)));
  ASSERT_OK(Heartbeat(Task("ps", 1, 99)));
  FinishLoad(NextLoad());
  EXPECT_FALSE(HasOrder());
}

TEST_F(EndTest, AWholeClusterThatIsToldToStopWritesOneCheckpoint) {
  StartTraining();
  TrainTo(10);
  FinishCheckpoint();
  chief().RequestStop(now_);
  EXPECT_FALSE(LeavingHeartbeat(ps0_).may_leave());
  EXPECT_FALSE(LeavingHeartbeat(ps1_).may_leave());
  now_ += kLeaveDelay;
  FinishCheckpoint();
  EXPECT_FALSE(HasOrder());
  EXPECT_TRUE(LeavingHeartbeat(ps0_).may_leave());
  EXPECT_TRUE(LeavingHeartbeat(ps1_).may_leave());
  EXPECT_THAT(outcome(), Optional(StatusIs(absl::StatusCode::kCancelled)));
}

// It has taken no update behind the checkpoint.
TEST_F(EndTest, APsThatAsksAfterTheLastOrderOfAStopLeavesWithIt) {
  StartTraining();
  TrainTo(5);
  Stop();
  const auto order = NextCheckpoint();
  EXPECT_FALSE(LeavingHeartbeat(ps1_).may_leave());
  CheckpointDone(order, absl::OkStatus());
  EXPECT_TRUE(LeavingHeartbeat(ps1_).may_leave());
  EXPECT_FALSE(HasOrder());
  EXPECT_THAT(outcome(), Optional(StatusIs(absl::StatusCode::kCancelled)));
}

TEST_F(EndTest, ShardsStayUntilAPsThatHasLeftHasASuccessor) {
  StartTraining();
  TrainTo(5);
  AskToLeave(ps1_);
  const auto order = NextCheckpoint();
  EXPECT_TRUE(order.stay);
  CheckpointDone(order, absl::OkStatus());
  EXPECT_FALSE(HasOrder()) << "ps/1 is there still";
  ASSERT_OK(Leave(ps1_));
  EXPECT_FALSE(HasOrder());
  const wire::Task successor = Task("ps", 1, 99);
  ASSERT_OK(Register(successor));
  ASSERT_OK(Heartbeat(successor));
  FinishLoad(NextLoad());
  // Each is told to go on, by a load with which it keeps its values.
  const auto load = NextLoad();
  ASSERT_EQ(load.targets.size(), 2);
  EXPECT_TRUE(load.targets[0].holds_shard);
  EXPECT_TRUE(load.targets[1].holds_shard);
  FinishLoad(load);
  EXPECT_FALSE(HasOrder());
}

TEST_F(EndTest, ShardsGoOnAfterACheckpointThatFailed) {
  StartTraining();
  TrainTo(5);
  AskToLeave(ps1_);
  CheckpointDone(NextCheckpoint(), absl::UnavailableError("x"));
  const auto load = NextLoad();
  EXPECT_EQ(load.targets.size(), 2);
  FinishLoad(load);
  EXPECT_FALSE(HasOrder());
  Pass(absl::Seconds(2), everyone_);
  EXPECT_TRUE(NextCheckpoint().stay);
}

TEST_F(EndTest, AnOrdinaryCheckpointLetsShardsGoOn) {
  StartTraining();
  TrainTo(10);
  EXPECT_FALSE(NextCheckpoint().stay);
}

TEST_F(EndTest, AStopBehindTheCheckpointOfALeavingPsWritesNoOther) {
  StartTraining();
  TrainTo(5);
  AskToLeave(ps1_);
  FinishCheckpoint();
  chief().RequestStop(now_);
  EXPECT_FALSE(HasOrder());
  EXPECT_THAT(outcome(), Optional(StatusIs(absl::StatusCode::kCancelled)));
}

TEST_F(EndTest, APsThatAsksDuringAStayLeavesAtOnce) {
  StartTraining();
  TrainTo(5);
  AskToLeave(ps1_);
  FinishCheckpoint();
  EXPECT_TRUE(LeavingHeartbeat(ps0_).may_leave());
  chief().RequestStop(now_);
  EXPECT_FALSE(HasOrder()) << "the checkpoint has all updates of ps/0";
  EXPECT_THAT(outcome(), Optional(StatusIs(absl::StatusCode::kCancelled)));
}

TEST_F(EndTest, TrainingDoesNotBeginWithAPsThatIsAboutToGo) {
  RegisterPs();
  RegisterWorkers();
  FinishLoad(NextLoad());
  EXPECT_FALSE(LeavingHeartbeat(ps1_).may_leave());
  FinishCheckpoint();
  EXPECT_EQ(phase(), wire::LOADING) << "ps/1 has nothing to lose, and goes";
  ASSERT_OK(Leave(ps1_));
  EXPECT_EQ(phase(), wire::WAITING_FOR_PS);
}

TEST_F(EndTest, TrainingBeginsWithAPsThatDoesNotGo) {
  RegisterPs();
  RegisterWorkers();
  FinishLoad(NextLoad());
  LeavingHeartbeat(ps1_);
  FinishCheckpoint();
  EXPECT_EQ(phase(), wire::LOADING);
  now_ += kDepartureLimit;
  Tick();
  EXPECT_EQ(phase(), wire::TRAINING);
}

TEST_F(EndTest, AStopWithoutALeavingPsWritesNone) {
  StartTraining();
  TrainTo(5);
  AskToLeave(ps1_);
  FinishCheckpoint();
  ASSERT_OK(Leave(ps1_));
  chief().RequestStop(now_);
  EXPECT_FALSE(HasOrder());
  EXPECT_THAT(outcome(), Optional(StatusIs(absl::StatusCode::kCancelled)));
}

TEST_F(EndTest, AWorkerPastTheEndOfAChiefWithAnEarlierOneEndsTheJob) {
  for (const bool is_synchronous : {false, true}) {
    SCOPED_TRACE(is_synchronous);
    chief_.reset();
    if (is_synchronous) {
      options_.job.mutable_parameter_server()
          ->mutable_synchronous()
          ->set_total_replicas(2);
    }
    options_.job.mutable_end()->set_steps(100000);
    Resume(12);
    *options_.resumed->mutable_job() = options_.job;
    options_.job.mutable_end()->set_steps(50);
    BringBackPs();
    ASSERT_OK(Register(worker0_, "", 70000));
    EXPECT_EQ(phase(), wire::FINISHING);
  }
}

TEST_F(EndTest, OneShardsLoadDoesNotHideTheTroubleOfAnother) {
  RegisterPs();
  const auto load = NextLoad();
  LoadDone(load.targets[0], absl::UnavailableError("Stale"));
  LoadDone(load.targets[1], absl::OkStatus());
  EXPECT_EQ(chief().Status(now_).trouble(), "can't load ps/0: Stale");
}

TEST_F(EndTest, APsMayLeaveAJobThatHasEnded) {
  StartTraining();
  TrainTo(100);
  EXPECT_FALSE(LeavingHeartbeat(ps0_).may_leave());
  FinishCheckpoint();
  EXPECT_TRUE(LeavingHeartbeat(ps0_).may_leave());
}

}  // namespace
}  // namespace parasol::coordinator_testing
