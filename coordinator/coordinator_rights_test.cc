// What strangers get from a chief that can't tell who asks: they have
// registered or not, and say what they like.

#include <algorithm>
#include <string>

#include "base/status_matchers.h"
#include "cluster/trust/process_secret.h"
#include "coordinator/steps/applied_updates.h"
#include "coordinator/testing/coordinator_fixture.h"

namespace parasol {
namespace {

using coordinator_testing::CoordinatorTest;
using coordinator_testing::Task;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kSteps = 200000;

class CoordinatorRightsTest : public CoordinatorTest {
 protected:
  CoordinatorRightsTest() {
    options_.job.mutable_end()->set_steps(kSteps);
    options_.job.mutable_checkpoint()->set_every_steps(kSteps);
  }

  void HeartbeatOf(const wire::Task& ps, int64_t updates) {
    wire::HeartbeatRequest request;
    *request.mutable_task() = ps;
    request.set_run_id(options_.run_id);
    request.set_layout(options_.layout);
    request.set_updates(updates);
    ASSERT_OK(chief().Heartbeat(request, now_));
  }
  // Claims as a worker that says at once that it has done all it is granted.
  int64_t ClaimWithoutWork(int claims) {
    int64_t granted = 0;
    for (int i = 0; i < claims; ++i) {
      const auto claim = Claim(worker1_, granted, 1024);
      EXPECT_OK(claim);
      granted = claim->granted_steps();
    }
    return granted;
  }
  int64_t global_step() { return chief().Status(now_).global_step(); }
};

TEST_F(CoordinatorRightsTest, OnlyARegisteredWorkerHearsWhereVariablesAre) {
  StartTraining();
  EXPECT_OK(Placement(worker1_));
  for (const wire::Task& other :
       {Task("worker", 1, 99), Task("worker", 1, 0), Task("worker", 2, 21),
        Task("worker", 0, 21), Task("worker", -1, 21)}) {
    EXPECT_THAT(Placement(other), StatusIs(absl::StatusCode::kUnavailable,
                                           HasSubstr("is not registered")))
        << other.ShortDebugString();
  }
  for (const wire::Task& other :
       {ps0_, Task("evaluator", 0, 30), Task("chief", 0, 1), wire::Task()}) {
    EXPECT_THAT(Placement(other), StatusIs(absl::StatusCode::kInvalidArgument))
        << other.ShortDebugString();
  }
}

TEST_F(CoordinatorRightsTest, OnlyAWorkersFailureIsTheJobs) {
  StartTraining();
  const wire::Task evaluator = Task("evaluator", 0, 30);
  ASSERT_OK(Register(evaluator));
  for (const wire::Task& other : {evaluator, ps0_, wire::Task()}) {
    wire::ReportFailureRequest request;
    *request.mutable_task() = other;
    EXPECT_THAT(chief().ReportFailure(request, now_),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
  EXPECT_EQ(phase(), wire::TRAINING);
}

TEST_F(CoordinatorRightsTest, AReplacedWorkerHearsNothingMore) {
  StartTraining();
  ASSERT_OK(Register(Task("worker", 1, 99)));
  EXPECT_OK(Placement(Task("worker", 1, 99)));
  EXPECT_THAT(Placement(worker1_), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(CoordinatorRightsTest, APlacementAdmitsAWorkerAndNamesNoIncarnation) {
  StartTraining();
  ASSERT_OK_AND_ASSIGN(const auto placement, Placement(worker1_));
  const wire::Task ps[] = {ps0_, ps1_};
  for (int i = 0; i < placement.shard_size(); ++i) {
    const wire::Shard& shard = placement.shard(i);
    EXPECT_EQ(shard.incarnation(), PublicNumber(ps[i].incarnation()));
    EXPECT_NE(shard.incarnation(), ps[i].incarnation());
    EXPECT_THAT(ReadAdmission(shard.admission(), ps[i].incarnation()),
                IsOkAndHolds(AdmittedWorker{.index = 1, .incarnation = 21}));
  }
  // Nor does the status, which everybody may ask for.
  const wire::JobStatus status = chief().Status(now_);
  for (const wire::TaskStatus& task : status.task()) {
    EXPECT_EQ(task.task().incarnation(), 0) << task.ShortDebugString();
  }
}

TEST_F(CoordinatorRightsTest, AWorkerThatPushesNothingIsNotCreditedForLong) {
  StartTraining();
  HeartbeatOf(ps0_, 0);
  HeartbeatOf(ps1_, 0);
  const int64_t granted = ClaimWithoutWork(300);
  EXPECT_LE(granted, AppliedUpdates::kAlwaysAhead + 1024);
  EXPECT_LE(global_step(), granted);
  EXPECT_EQ(phase(), wire::TRAINING);
  EXPECT_THAT(chief().Status(now_).trouble(),
              HasSubstr("more steps than any ps has applied"));
  EXPECT_EQ(chief().Status(now_).finding(0).kind(), wire::Finding::WORKER);
  // Nor does the next heartbeat without pushes change that.
  HeartbeatOf(ps0_, 0);
  EXPECT_EQ(Claim(worker1_, granted, 1024)->granted_steps(), granted);
  // What is pushed then counts.
  HeartbeatOf(ps1_, granted + 1);
  EXPECT_GT(Claim(worker1_, granted, 1024)->granted_steps(), granted);
  EXPECT_THAT(chief().Status(now_).trouble(), IsEmpty());
}

TEST_F(CoordinatorRightsTest, AWorkerThatPushesIsNeverHeldUp) {
  StartTraining();
  int64_t granted = 0;
  for (int second = 0; second < 20; ++second) {
    HeartbeatOf(ps0_, granted);
    HeartbeatOf(ps1_, granted);
    for (int claim = 0; claim < 3; ++claim) {
      ASSERT_OK_AND_ASSIGN(const auto answer, Claim(worker1_, granted, 1024));
      ASSERT_GT(answer.granted_steps(), granted);
      granted = answer.granted_steps();
    }
  }
}

TEST_F(CoordinatorRightsTest, ALostPsIsNoReasonToDoubtWorkers) {
  StartTraining();
  HeartbeatOf(ps0_, 0);
  HeartbeatOf(ps1_, 0);
  const int64_t granted = ClaimWithoutWork(300);
  Pass(absl::Seconds(12), {worker0_, worker1_});
  ASSERT_OK(Register(ps0_, options_.run_id));
  ASSERT_OK(Register(ps1_, options_.run_id));
  HeartbeatOf(ps0_, 5);
  HeartbeatOf(ps1_, 5);
  EXPECT_GT(Claim(worker1_, granted, 1024)->granted_steps(), granted);
}

class SynchronousRightsTest : public CoordinatorRightsTest {
 protected:
  SynchronousRightsTest() {
    job::Synchronous& mode =
        *options_.job.mutable_parameter_server()->mutable_synchronous();
    mode.set_replicas_to_aggregate(2);
    mode.set_total_replicas(2);
  }
};

TEST_F(SynchronousRightsTest, OneClaimOfAllStepsDoesNotCompleteTheJob) {
  StartTraining();
  HeartbeatOf(ps0_, 0);
  HeartbeatOf(ps1_, 0);
  ASSERT_OK(Claim(worker1_, kSteps, 0));
  EXPECT_EQ(phase(), wire::TRAINING);
  EXPECT_LE(global_step(), AppliedUpdates::kAlwaysAhead);
  HeartbeatOf(ps0_, 10);
  HeartbeatOf(ps1_, 12);
  ASSERT_OK(Claim(worker1_, kSteps, 0));
  EXPECT_LE(global_step(), 12 + AppliedUpdates::kAlwaysAhead);
}

TEST_F(SynchronousRightsTest, NeitherALeaveNorARegistrationDoes) {
  StartTraining();
  HeartbeatOf(ps0_, 0);
  HeartbeatOf(ps1_, 0);
  ASSERT_OK(Leave(worker1_, kSteps));
  EXPECT_EQ(phase(), wire::TRAINING);
  EXPECT_LE(global_step(), AppliedUpdates::kAlwaysAhead);
  ASSERT_OK(Register(Task("worker", 1, 99), options_.run_id, kSteps));
  EXPECT_LE(global_step(), AppliedUpdates::kAlwaysAhead);
}

TEST_F(SynchronousRightsTest, StepsThatThePsHaveAppliedAreCounted) {
  StartTraining();
  HeartbeatOf(ps0_, kSteps);
  HeartbeatOf(ps1_, kSteps);
  ASSERT_OK(Claim(worker1_, kSteps, 0));
  EXPECT_EQ(global_step(), kSteps);
  EXPECT_EQ(phase(), wire::FINISHING);
}

TEST_F(CoordinatorRightsTest, AbsurdTotalsAreRefusedBeforeAnythingIsKept) {
  StartTraining();
  for (const int64_t total : {int64_t{-1}, INT64_MIN, INT64_MAX}) {
    wire::ClaimStepsRequest claims[4];
    claims[0].set_completed_steps(total);
    claims[1].set_started_steps(total);
    claims[2].set_granted_steps(total);
    claims[3].set_pushed_steps(total);
    for (wire::ClaimStepsRequest& claim : claims) {
      *claim.mutable_task() = worker1_;
      EXPECT_THAT(chief().ClaimSteps(claim, now_),
                  StatusIs(absl::StatusCode::kFailedPrecondition));
    }
    wire::RegisterRequest request;
    *request.mutable_task() = worker1_;
    request.set_completed_steps(total);
    EXPECT_THAT(chief().Register(request, now_),
                StatusIs(absl::StatusCode::kFailedPrecondition));
  }
  EXPECT_EQ(global_step(), 0);
}

TEST_F(CoordinatorRightsTest, ACollectiveAddressIsAPort) {
  for (const std::string address :
       {"nowhere", "host:", "host:-1", "host:65536", "host:1\n", "host:http"}) {
    wire::RegisterRequest request;
    *request.mutable_task() = worker1_;
    request.set_collective_address(address);
    EXPECT_THAT(chief().Register(request, now_),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << address;
  }
}

}  // namespace
}  // namespace parasol
