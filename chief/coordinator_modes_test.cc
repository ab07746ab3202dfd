// What differs with the job's consistency mode.

#include "base/status_matchers.h"
#include "chief/testing/coordinator_fixture.h"

namespace parasol {
namespace {

using coordinator_testing::CoordinatorTest;
using coordinator_testing::Task;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;

class BoundedStalenessTest : public CoordinatorTest {
 protected:
  BoundedStalenessTest() {
    options_.job.mutable_parameter_server()
        ->mutable_bounded_staleness()
        ->set_bound(1);
  }
};

TEST_F(BoundedStalenessTest, WhomTheFastestWaitsForIsNamed) {
  StartTraining();
  ASSERT_OK_AND_ASSIGN(auto first, Claim(worker0_, 0, 100));
  EXPECT_EQ(first.granted_steps(), 2);
  EXPECT_THAT(first.awaited_task(), IsEmpty());
  ASSERT_OK_AND_ASSIGN(auto second, Claim(worker0_, 2, 100));
  EXPECT_EQ(second.granted_steps(), 2);
  EXPECT_THAT(second.awaited_task(), ElementsAre("worker/1"));
  EXPECT_THAT(chief().Status().awaited_task(), ElementsAre("worker/1"));
}

TEST_F(BoundedStalenessTest, AWorkerWhoseLeaseRanOutIsWaitedForNoMore) {
  StartTraining();
  ASSERT_OK(Claim(worker0_, 0, 100));
  ASSERT_OK(Claim(worker0_, 2, 100));
  Pass(absl::Seconds(11), {ps0_, ps1_, worker0_});
  ASSERT_OK_AND_ASSIGN(auto claim, Claim(worker0_, 2, 100));
  EXPECT_EQ(claim.granted_steps(), 4);
}

TEST_F(BoundedStalenessTest, ARestartedChiefGrantsWhenAllWorkersAreBack) {
  Resume(50);
  BringBackPs();
  ASSERT_OK(Register(worker0_, "", 10));
  ASSERT_EQ(phase(), wire::TRAINING);
  ASSERT_OK_AND_ASSIGN(auto early, Claim(worker0_, 10, 100));
  EXPECT_EQ(early.granted_steps(), 10);
  ASSERT_OK(Register(worker1_, "", 10));
  ASSERT_OK_AND_ASSIGN(auto late, Claim(worker0_, 10, 100));
  EXPECT_GT(late.granted_steps(), 10);
}

TEST_F(BoundedStalenessTest,
       ARestartedChiefDoesNotAwaitAllForLongerThanALease) {
  Resume(50);
  BringBackPs();
  ASSERT_OK(Register(worker0_, "", 10));
  Pass(options_.lease, {ps0_, ps1_, worker0_});
  ASSERT_OK_AND_ASSIGN(auto claim, Claim(worker0_, 10, 100));
  EXPECT_GT(claim.granted_steps(), 10);
}

TEST_F(BoundedStalenessTest, ARestartedChiefNamesTheWorkersItAwaits) {
  Resume(50);
  BringBackPs();
  ASSERT_OK(Register(worker0_, "", 10));
  ASSERT_OK_AND_ASSIGN(auto claim, Claim(worker0_, 10, 100));
  EXPECT_THAT(claim.awaited_task(), ElementsAre("worker/1"));
  ASSERT_OK(Register(worker1_, "", 10));
  ASSERT_OK_AND_ASSIGN(claim, Claim(worker0_, 10, 100));
  EXPECT_THAT(claim.awaited_task(), IsEmpty());
}

class SynchronousTest : public CoordinatorTest {
 protected:
  SynchronousTest() {
    mode().set_total_replicas(2);
    mode().set_replicas_to_aggregate(2);
  }
  job::Synchronous& mode() {
    return *options_.job.mutable_parameter_server()->mutable_synchronous();
  }
};

TEST_F(SynchronousTest, ReplicasAreSharedOutAndALostWorkersReassigned) {
  StartTraining();
  ASSERT_OK_AND_ASSIGN(auto before, Claim(worker0_, 0, 0));
  EXPECT_EQ(before.replica_size(), 1);
  Pass(absl::Seconds(11), {ps0_, ps1_, worker0_});
  ASSERT_OK_AND_ASSIGN(auto after, Claim(worker0_, 0, 0));
  EXPECT_THAT(after.replica(), ElementsAre(0, 1));
  EXPECT_NE(after.assignment_version(), before.assignment_version());
  EXPECT_EQ(phase(), wire::TRAINING);
}

TEST_F(SynchronousTest, ALostWorkerEndsTheJobWhereItSaysSo) {
  mode().set_lost_worker(job::Synchronous::FAIL);
  StartTraining();
  ASSERT_OK(Leave(worker1_));
  EXPECT_EQ(phase(), wire::FAILED);
  EXPECT_THAT(chief().Status().failure(), HasSubstr("worker/1 is gone"));
}

TEST_F(SynchronousTest, TheSuccessorOfAWorkerThatHadGoneBeforeIsNoLoss) {
  mode().set_lost_worker(job::Synchronous::FAIL);
  RegisterPs();
  RegisterWorkers();
  ASSERT_OK(Leave(worker1_));
  FinishLoad(NextLoad());
  chief().CheckpointDone(NextCheckpoint(), absl::OkStatus(), now_);
  wire::Task successor = worker1_;
  successor.set_incarnation(77);
  ASSERT_OK(Register(successor));
  EXPECT_EQ(phase(), wire::TRAINING);
}

TEST_F(SynchronousTest, AWorkerThatLeavesAfterTheChiefWasToldToGoIsNotLost) {
  mode().set_lost_worker(job::Synchronous::FAIL);
  StartTraining();
  chief().RequestStop(now_);
  ASSERT_OK(Leave(worker1_));
  EXPECT_EQ(phase(), wire::TRAINING);
}

TEST_F(SynchronousTest, TheLastCheckpointOfAStopAwaitsNoWorkersThatHaveLeft) {
  StartTraining();
  ASSERT_OK(Claim(worker0_, 10, 0));
  chief().RequestStop(now_);
  const Coordinator::CheckpointOrder early = NextCheckpoint();
  EXPECT_TRUE(early.may_await);
  EXPECT_FALSE(chief().AwaitsNobody());
  ASSERT_OK(Leave(worker0_, 11));
  ASSERT_OK(Leave(worker1_, 11));
  EXPECT_TRUE(chief().AwaitsNobody());
  chief().CheckpointDone(early, absl::CancelledError("in vain"), now_);
  const Coordinator::CheckpointOrder last = NextCheckpoint();
  EXPECT_FALSE(last.may_await);
  EXPECT_EQ(last.manifest.global_step(), 11);
  chief().CheckpointDone(last, absl::OkStatus(), now_);
  EXPECT_FALSE(HasOrder());
  EXPECT_THAT(outcome(), Optional(StatusIs(absl::StatusCode::kCancelled)));
}

TEST_F(SynchronousTest, ACheckpointIsAtTheStepOfItsCut) {
  StartTraining();
  ASSERT_OK(Claim(worker0_, 10, 0));
  Coordinator::CheckpointOrder order = NextCheckpoint();
  EXPECT_TRUE(order.at_one_step && order.may_await);
  EXPECT_EQ(order.manifest.global_step(), 10);
  order.manifest.set_global_step(12);
  chief().CheckpointDone(order, absl::OkStatus(), now_);
  EXPECT_EQ(chief().newest_checkpoint(), 12);
}

TEST_F(SynchronousTest, TheWorkerWhoseGradientsOthersAwaitIsNamed) {
  StartTraining();
  wire::ClaimStepsRequest claim;
  *claim.mutable_task() = worker0_;
  claim.set_completed_steps(10);
  claim.set_pushed_steps(11);
  for (int i = 0; i < 20; ++i) {
    ASSERT_OK_AND_ASSIGN(const auto earlier, chief().ClaimSteps(claim, now_));
    claim.set_assignment_version(earlier.assignment_version());
  }
  ASSERT_OK_AND_ASSIGN(const auto answer, chief().ClaimSteps(claim, now_));
  EXPECT_THAT(answer.awaited_task(), ElementsAre("worker/1"));
  EXPECT_THAT(chief().Status().awaited_task(), ElementsAre("worker/1"));
}

TEST_F(SynchronousTest, PsHearWhereTheClusterIs) {
  StartTraining();
  ASSERT_OK(Claim(worker0_, 10, 0));
  ASSERT_OK_AND_ASSIGN(const auto heard, Heartbeat(ps0_));
  EXPECT_EQ(heard.run_id(), options_.run_id);
  EXPECT_EQ(heard.global_step(), 10);
}

TEST_F(SynchronousTest, TheFirstAndTheLastCheckpointAreTakenAtTheBorders) {
  RegisterPs();
  RegisterWorkers();
  FinishLoad(NextLoad());
  const Coordinator::CheckpointOrder first = NextCheckpoint();
  EXPECT_TRUE(first.at_one_step);
  EXPECT_EQ(first.manifest.global_step(), 0);
  chief().CheckpointDone(first, absl::OkStatus(), now_);
  ASSERT_OK(Claim(worker0_, 100, 0));
  ASSERT_EQ(phase(), wire::FINISHING);
  const Coordinator::CheckpointOrder last = NextCheckpoint();
  EXPECT_EQ(last.manifest.global_step(), 100);
  EXPECT_TRUE(last.manifest.final());
}

}  // namespace
}  // namespace parasol
