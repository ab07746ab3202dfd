// What differs with the job's consistency mode.

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "cluster/job/defaults.h"
#include "coordinator/testing/coordinator_fixture.h"

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
  EXPECT_THAT(chief().Status(now_).awaited_task(), ElementsAre("worker/1"));
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

TEST_F(CoordinatorTest, ARestartedChiefAwaitsAsynchronousWorkersForAMoment) {
  Resume(50);
  BringBackPs();
  ASSERT_OK(Register(worker0_, "", 10));
  ASSERT_EQ(phase(), wire::TRAINING);
  Pass(absl::Milliseconds(1900), {ps0_, ps1_, worker0_});
  ASSERT_OK_AND_ASSIGN(auto early, Claim(worker0_, 10, 100));
  EXPECT_EQ(early.granted_steps(), 10);
  EXPECT_THAT(early.awaited_task(), ElementsAre("worker/1"));
  Pass(absl::Milliseconds(100), {ps0_, ps1_, worker0_});
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
  EXPECT_THAT(chief().Status(now_).failure(), HasSubstr("worker/1 is gone"));
}

TEST_F(SynchronousTest, TheSuccessorOfAWorkerThatHadGoneBeforeIsNoLoss) {
  mode().set_lost_worker(job::Synchronous::FAIL);
  RegisterPs();
  RegisterWorkers();
  ASSERT_OK(Leave(worker1_));
  FinishLoad(NextLoad());
  CheckpointDone(NextCheckpoint(), absl::OkStatus());
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
  const CheckpointOrder early = NextCheckpoint();
  EXPECT_TRUE(early.may_await);
  EXPECT_FALSE(Tick().awaits_nobody);
  ASSERT_OK(Leave(worker0_, 11));
  ASSERT_OK(Leave(worker1_, 11));
  EXPECT_TRUE(Tick().awaits_nobody);
  CheckpointDone(early, absl::CancelledError("in vain"));
  const CheckpointOrder last = NextCheckpoint();
  EXPECT_FALSE(last.may_await);
  EXPECT_EQ(last.manifest.global_step(), 11);
  CheckpointDone(last, absl::OkStatus());
  EXPECT_FALSE(HasOrder());
  EXPECT_THAT(outcome(), Optional(StatusIs(absl::StatusCode::kCancelled)));
}

// The workers may be ahead of what they have told the chief.
TEST_F(SynchronousTest, AStopAsksTheShardsHowFarTheyAre) {
  StartTraining();
  chief().RequestStop(now_);
  const CheckpointOrder order = NextCheckpoint();
  EXPECT_TRUE(order.at_one_step);
  EXPECT_TRUE(order.stay);
}

TEST_F(SynchronousTest, ACheckpointIsAtTheStepOfItsCut) {
  StartTraining();
  ASSERT_OK(Claim(worker0_, 10, 0));
  CheckpointOrder order = NextCheckpoint();
  EXPECT_TRUE(order.at_one_step && order.may_await);
  EXPECT_EQ(order.manifest.global_step(), 10);
  order.manifest.set_global_step(12);
  CheckpointDone(order, absl::OkStatus());
  EXPECT_EQ(chief().NewsAt(now_).newest_checkpoint, 12);
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
  EXPECT_THAT(chief().Status(now_).awaited_task(), ElementsAre("worker/1"));
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
  const CheckpointOrder first = NextCheckpoint();
  EXPECT_TRUE(first.at_one_step);
  EXPECT_EQ(first.manifest.global_step(), 0);
  CheckpointDone(first, absl::OkStatus());
  ASSERT_OK(Claim(worker0_, 100, 0));
  ASSERT_EQ(phase(), wire::FINISHING);
  const CheckpointOrder last = NextCheckpoint();
  EXPECT_EQ(last.manifest.global_step(), 100);
  EXPECT_TRUE(last.manifest.final());
}

class MirroredTest : public CoordinatorTest {
 protected:
  MirroredTest() {
    options_.is_mirrored = true;
    options_.group_secret = "secret";
    options_.shards = {{0, "w0:2", {}}};
    options_.tasks.erase({"ps", 1});
    job::Synchronous& mode =
        *options_.job.mutable_parameter_server()->mutable_synchronous();
    mode.set_replicas_to_aggregate(2);
    mode.set_total_replicas(2);
  }

  void RegisterWorker(const wire::Task& worker) {
    wire::RegisterRequest request;
    *request.mutable_task() = worker;
    request.set_collective_address(
        absl::StrCat("stranger:", 100 + worker.index()));
    ASSERT_OK(chief().Register(request, now_));
  }
  // Everything that begins a run but the workers.
  void LoadVariables() {
    ASSERT_OK(Register(ps0_));
    FinishLoad(NextLoad());
    if (!options_.resumed) {
      CheckpointDone(NextCheckpoint(), absl::OkStatus());
    }
  }
  wire::ClaimStepsResponse ClaimWith(const wire::Task& worker, int64_t known,
                                     int64_t broken = 0,
                                     int64_t completed = 0) {
    wire::ClaimStepsRequest request;
    *request.mutable_task() = worker;
    request.set_assignment_version(known);
    request.set_broken_assignment(broken);
    request.set_completed_steps(completed);
    auto response = chief().ClaimSteps(request, now_);
    EXPECT_OK(response);
    return response.ok() ? *response : wire::ClaimStepsResponse();
  }
};

TEST_F(MirroredTest, ANewRunWaitsForAllWorkersAndNamesTheMissing) {
  RegisterWorker(worker0_);
  EXPECT_THAT(chief().Status(now_).missing_task(),
              ElementsAre("worker/0", "worker/1"));
  LoadVariables();
  EXPECT_EQ(phase(), wire::LOADING);
  EXPECT_THAT(chief().Status(now_).missing_task(), ElementsAre("worker/1"));
  EXPECT_FALSE(HasOrder());
  Pass(absl::Minutes(4), {ps0_, worker0_});
  EXPECT_EQ(outcome(), std::nullopt);
  RegisterWorker(worker1_);
  EXPECT_EQ(phase(), wire::TRAINING);
  EXPECT_THAT(chief().Status(now_).missing_task(), IsEmpty());
}

TEST_F(MirroredTest, AWorkerThatNeverComesEndsTheWait) {
  RegisterWorker(worker0_);
  LoadVariables();
  Pass(absl::Minutes(5), {ps0_, worker0_});
  EXPECT_THAT(outcome(),
              Optional(StatusIs(absl::StatusCode::kUnavailable,
                                HasSubstr("waited 5m for worker/1"))));
}

TEST_F(MirroredTest, ARunThatGoesOnWaitsForMissingWorkersForALease) {
  Resume(50);
  RegisterWorker(worker0_);
  LoadVariables();
  EXPECT_EQ(phase(), wire::LOADING);
  Pass(options_.lease, {ps0_, worker0_});
  EXPECT_EQ(phase(), wire::TRAINING);
}

TEST_F(MirroredTest, AGroupIsAllWorkersWithTheirAddressesAndReplicas) {
  RegisterWorker(worker0_);
  RegisterWorker(worker1_);
  LoadVariables();
  const auto answer = ClaimWith(worker0_, 0);
  ASSERT_EQ(answer.member_size(), 2);
  EXPECT_EQ(answer.group_secret(), "secret");
  for (const int i : {0, 1}) {
    EXPECT_EQ(answer.member(i).task().index(), i);
    EXPECT_EQ(answer.member(i).task().incarnation(), 20 + i);
    EXPECT_EQ(answer.member(i).address(), absl::StrCat("w", i, ":", 100 + i))
        << "the host is the cluster spec's, whatever a worker says";
    EXPECT_THAT(answer.member(i).replica(), ElementsAre(i));
  }
  // Who knows the group is not told again.
  EXPECT_EQ(ClaimWith(worker0_, answer.assignment_version()).member_size(), 0);
}

// Worker 0, which is told to end, waits for the chief beside it.
TEST_F(MirroredTest, TheEndDoesNotAwaitThePartOfWorker0ThatHasVariables) {
  RegisterWorker(worker0_);
  RegisterWorker(worker1_);
  LoadVariables();
  ClaimWith(worker0_, 0, 0, /*completed=*/100);
  CheckpointDone(NextCheckpoint(), absl::OkStatus());
  ASSERT_EQ(phase(), wire::COMPLETE);
  ASSERT_OK(Leave(worker1_, 100));
  EXPECT_EQ(outcome(), std::nullopt);
  ASSERT_OK(Leave(worker0_, 100));
  EXPECT_EQ(outcome(), absl::OkStatus());
}

TEST_F(MirroredTest, AWorkerHasTheNeighboursOfItsPlaceWheneverItComes) {
  job::MultiWorkerMirrored& strategy =
      *options_.job.mutable_strategy()->mutable_multi_worker_mirrored();
  strategy.add_device("cpu:0");
  strategy.add_device("cpu:1");
  ASSERT_OK(FillClusterDefaults(options_.job, /*workers=*/2));
  RegisterWorker(worker1_);
  RegisterWorker(worker0_);
  LoadVariables();
  const auto answer = ClaimWith(worker0_, 0);
  EXPECT_THAT(answer.replica(), ElementsAre(0, 1));
  ASSERT_EQ(answer.member_size(), 2);
  EXPECT_THAT(answer.member(1).replica(), ElementsAre(2, 3));
  EXPECT_EQ(chief().Status(now_).num_replicas_in_sync(), 4);
}

TEST_F(MirroredTest, ALostWorkersReplicasGoToTheOthersUntilItIsBack) {
  RegisterWorker(worker0_);
  RegisterWorker(worker1_);
  LoadVariables();
  const auto first = ClaimWith(worker0_, 0);
  Pass(absl::Seconds(11), {ps0_, worker0_});
  const auto second = ClaimWith(worker0_, first.assignment_version());
  EXPECT_GT(second.assignment_version(), first.assignment_version());
  ASSERT_EQ(second.member_size(), 1);
  EXPECT_THAT(second.member(0).replica(), ElementsAre(0, 1));
  EXPECT_EQ(phase(), wire::TRAINING);
  RegisterWorker(Task("worker", 1, 31));
  const auto third = ClaimWith(worker0_, second.assignment_version());
  EXPECT_GT(third.assignment_version(), second.assignment_version());
  ASSERT_EQ(third.member_size(), 2);
  EXPECT_EQ(third.member(1).task().incarnation(), 31);
}

TEST_F(MirroredTest, ALaterChiefsGroupsAreLaterWhateverItsClockSays) {
  RegisterWorker(worker0_);
  RegisterWorker(worker1_);
  LoadVariables();
  const int64_t before = ClaimWith(worker0_, 0).assignment_version();
  chief_.reset();
  ++options_.chief_epoch;
  now_ -= absl::Hours(30);
  Resume(50);
  RegisterWorker(worker0_);
  RegisterWorker(worker1_);
  LoadVariables();
  EXPECT_GT(ClaimWith(worker0_, before).assignment_version(), before);
}

TEST_F(MirroredTest, ThereIsNoGroupWithoutWorker0) {
  RegisterWorker(worker0_);
  RegisterWorker(worker1_);
  LoadVariables();
  const auto first = ClaimWith(worker1_, 0);
  EXPECT_EQ(first.member_size(), 2);
  Pass(absl::Seconds(11), {ps0_, worker1_});
  const auto alone = ClaimWith(worker1_, first.assignment_version());
  EXPECT_GT(alone.assignment_version(), first.assignment_version());
  EXPECT_EQ(alone.member_size(), 0);
  RegisterWorker(Task("worker", 0, 30));
  EXPECT_EQ(ClaimWith(worker1_, alone.assignment_version()).member_size(), 2);
}

TEST_F(MirroredTest, AGroupThatBreaksIsFollowedByAnotherOnce) {
  RegisterWorker(worker0_);
  RegisterWorker(worker1_);
  LoadVariables();
  const int64_t version = ClaimWith(worker0_, 0).assignment_version();
  const int64_t next =
      ClaimWith(worker0_, version, /*broken=*/version).assignment_version();
  EXPECT_GT(next, version);
  // The other one reports the same group.
  const auto other = ClaimWith(worker1_, version, /*broken=*/version);
  EXPECT_EQ(other.assignment_version(), next);
  EXPECT_EQ(other.member_size(), 2);
}

TEST_F(MirroredTest, OnlyStepsThatWorker0HasCount) {
  RegisterWorker(worker0_);
  RegisterWorker(worker1_);
  LoadVariables();
  ClaimWith(worker0_, 0);
  ClaimWith(worker1_, 0, 0, /*completed=*/8);
  EXPECT_EQ(chief().Status(now_).global_step(), 0);
  ClaimWith(worker0_, 0, 0, /*completed=*/7);
  EXPECT_EQ(chief().Status(now_).global_step(), 7);
  EXPECT_EQ(chief().Status(now_).num_replicas_in_sync(), 2);
}

// Two ps have tables, and worker 0 is a third one to the chief.
class HybridTest : public MirroredTest {
 protected:
  HybridTest() {
    options_.state_place = 2;
    options_.shards = {{0, "p0:1", {}}, {1, "p1:1", {}}, {2, "w0:2", {}}};
    options_.tasks[{"ps", 1}] = "p1:1";
    options_.tasks[{"ps", 2}] = "w0:2";
  }

  const wire::Task state_ = Task("ps", 2, 12);
};

TEST_F(HybridTest, WorkersExchangeWithPsAlone) {
  RegisterWorker(worker0_);
  RegisterPs();
  EXPECT_THAT(chief().Status(now_).missing_task(),
              ElementsAre("worker/0", "worker/1"));
  ASSERT_OK(Register(state_));
  FinishLoad(NextLoad());
  CheckpointDone(NextCheckpoint(), absl::OkStatus());
  ASSERT_OK_AND_ASSIGN(auto placement, Placement());
  ASSERT_EQ(placement.shard_size(), 2);
  EXPECT_EQ(placement.shard(1).address(), "p1:1");
  const wire::JobStatus status = chief().Status(now_);
  for (const wire::TaskStatus& task : status.task()) {
    EXPECT_FALSE(task.task().role() == "ps" && task.task().index() == 2);
  }
  // The loss of worker 0's variables moves no shard of theirs.
  RegisterWorker(worker1_);
  Pass(absl::Seconds(11), {ps0_, ps1_, worker1_});
  EXPECT_THAT(chief().Status(now_).missing_task(), ElementsAre("worker/0"));
  EXPECT_OK(Placement());
  Pass(absl::Minutes(5), {ps0_, ps1_, worker1_});
  EXPECT_THAT(outcome(),
              Optional(StatusIs(absl::StatusCode::kUnavailable,
                                HasSubstr("waited 5m for worker/0"))));
}

TEST_F(HybridTest, VariablesThatAreLoadedAgainAreToldTheClustersStep) {
  RegisterWorker(worker0_);
  RegisterWorker(worker1_);
  RegisterPs();
  ASSERT_OK(Register(state_));
  FinishLoad(NextLoad());
  CheckpointDone(NextCheckpoint(), absl::OkStatus());
  ClaimWith(worker0_, 0, 0, /*completed=*/7);
  Pass(absl::Seconds(11), {ps0_, ps1_, worker1_});
  ASSERT_OK(Register(Task("ps", 2, 42)));
  const LoadOrder order = NextLoad();
  ASSERT_EQ(order.targets.size(), 1);
  EXPECT_EQ(order.targets[0].shard, 2);
  EXPECT_EQ(order.global_step, 7);
}

TEST_F(MirroredTest, TheStatusNamesNoPs) {
  RegisterWorker(worker0_);
  LoadVariables();
  const wire::JobStatus status = chief().Status(now_);
  for (const wire::TaskStatus& task : status.task()) {
    EXPECT_NE(task.task().role(), "ps");
  }
}

}  // namespace
}  // namespace parasol
