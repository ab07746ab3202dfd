// Claims of steps, and messages that can't be true.

#include <cstdint>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "coordinator/testing/coordinator_fixture.h"
#include "gmock/gmock.h"

namespace parasol {
namespace {

using coordinator_testing::CoordinatorTest;
using coordinator_testing::kRun;
using coordinator_testing::Task;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ClaimsTest : public CoordinatorTest {};

TEST_F(ClaimsTest, MoreThanWasGrantedIsRefusedAndTheWorkerNamed) {
  StartTraining();
  ASSERT_OK(Claim(worker0_, 0, 3));
  for (const int64_t completed : {int64_t{4}, int64_t{1000000}, INT64_MAX}) {
    EXPECT_THAT(Claim(worker0_, completed, 1),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         AllOf(HasSubstr("worker/0"),
                               HasSubstr(absl::StrCat(completed)))));
    EXPECT_THAT(Leave(worker0_, completed),
                StatusIs(absl::StatusCode::kFailedPrecondition));
  }
  EXPECT_THAT(Claim(worker0_, -1, 1),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(chief().Status(now_).global_step(), 0);
  EXPECT_EQ(phase(), wire::TRAINING);
}

TEST_F(ClaimsTest, ARestartedChiefRefusesARegistrationThatCanNotBe) {
  Resume(50);
  RegisterPs(kRun);
  EXPECT_THAT(
      Register(worker0_, "", 1000000),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("worker/0")));
  EXPECT_EQ(chief().Status(now_).global_step(), 50);
}

TEST_F(ClaimsTest, ALiveWorkerThatCompletesNothingLosesItsStepsToOthers) {
  options_.job.mutable_end()->set_steps(2);
  StartTraining();
  ASSERT_OK_AND_ASSIGN(auto stuck, Claim(worker0_, 0, 1));
  ASSERT_EQ(stuck.granted_steps(), 1);
  ASSERT_OK(Claim(worker1_, 0, 1));
  ASSERT_OK_AND_ASSIGN(auto waits, Claim(worker1_, 1, 1));
  EXPECT_EQ(waits.granted_steps(), 1);
  EXPECT_THAT(waits.awaited_task(), ElementsAre("worker/0"));
  Pass(options_.worker_timeout, everyone_);
  ASSERT_OK_AND_ASSIGN(auto more, Claim(worker1_, 1, 1));
  EXPECT_EQ(more.granted_steps(), 2);
  EXPECT_THAT(chief().Status(now_).awaited_task(), Contains("worker/0"));
  ASSERT_OK(Claim(worker1_, 2, 0));
  EXPECT_EQ(phase(), wire::FINISHING);
}

TEST_F(ClaimsTest, ALiveWorkerThatCompletesNothingIsNamedEarly) {
  StartTraining();
  ASSERT_OK(Claim(worker0_, 0, 1));
  EXPECT_THAT(chief().Status(now_).awaited_task(), IsEmpty());
  Pass(kStillNamed, everyone_);
  EXPECT_THAT(chief().Status(now_).awaited_task(), ElementsAre("worker/0"));
}

TEST_F(ClaimsTest, AnExchangeOfLocalStepsMayTakeLonger) {
  options_.job.mutable_parameter_server()->mutable_local_steps()->set_steps(99);
  StartTraining();
  ASSERT_OK(Claim(worker0_, 0, 1));
  Pass(options_.worker_timeout / 2 - absl::Seconds(1), everyone_);
  EXPECT_THAT(chief().Status(now_).awaited_task(), IsEmpty());
  Pass(absl::Seconds(1), everyone_);
  EXPECT_THAT(chief().Status(now_).awaited_task(), ElementsAre("worker/0"));
}

TEST_F(ClaimsTest, AWorkerThatHasCompletedItsStepsIsGrantedStepsAgain) {
  StartTraining();
  ASSERT_OK(Claim(worker0_, 0, 1));
  Pass(options_.worker_timeout + absl::Seconds(2), everyone_);
  wire::ClaimStepsRequest in_flight;
  *in_flight.mutable_task() = worker0_;
  in_flight.set_assignment_version(versions_[worker0_.incarnation()]);
  in_flight.set_granted_steps(1);
  in_flight.set_started_steps(1);
  in_flight.set_want(1);
  ASSERT_OK_AND_ASSIGN(auto none, chief().ClaimSteps(in_flight, now_));
  EXPECT_EQ(none.granted_steps(), 0);
  ASSERT_OK_AND_ASSIGN(auto again, Claim(worker0_, 1, 1));
  EXPECT_EQ(again.granted_steps(), 2);
  EXPECT_EQ(chief().Status(now_).global_step(), 1);
  EXPECT_THAT(chief().Status(now_).awaited_task(), IsEmpty());
}

TEST_F(ClaimsTest, WhileAShardIsAwayNoWorkerIsBlamed) {
  StartTraining();
  ASSERT_OK(Claim(worker0_, 0, 1));
  Pass(kStillNamed, {ps0_, worker0_, worker1_});
  EXPECT_THAT(chief().Status(now_).awaited_task(), IsEmpty());
}

TEST_F(ClaimsTest, WorkersThatSplitTheSetDifferentlyAreRefused) {
  StartTraining();
  wire::ClaimStepsRequest request;
  *request.mutable_task() = worker0_;
  request.set_train_examples(100);
  request.add_shard_examples(60);
  request.add_shard_examples(40);
  ASSERT_OK(chief().ClaimSteps(request, now_));
  *request.mutable_task() = worker1_;
  request.set_shard_examples(1, 50);
  EXPECT_THAT(chief().ClaimSteps(request, now_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("worker/1"), HasSubstr("60, 50"),
                             HasSubstr("60, 40"))))
      << "the job ends by steps";
}

// A stopped worker's share of files is not left out of an epoch.
TEST_F(ClaimsTest, TheShareOfAWorkerThatStandsStillGoesToOthers) {
  options_.job.mutable_end()->clear_steps();
  options_.job.mutable_end()->set_epochs(1);
  options_.job.mutable_train()->set_batch_size(1);
  StartTraining();
  wire::ClaimStepsRequest request;
  request.set_train_examples(20);
  request.add_shard_examples(10);
  request.add_shard_examples(10);
  request.set_want(2);
  *request.mutable_task() = worker0_;
  ASSERT_OK(chief().ClaimSteps(request, now_));
  Pass(absl::Seconds(11), {ps0_, ps1_, worker1_});
  *request.mutable_task() = worker1_;
  std::set<int64_t> batches;
  while (phase() == wire::TRAINING) {
    ASSERT_OK_AND_ASSIGN(const auto response,
                         chief().ClaimSteps(request, now_));
    ASSERT_FALSE(phase() == wire::TRAINING && response.batch().empty());
    for (const wire::BatchRange& range : response.batch()) {
      for (int64_t i = 0; i < range.count(); ++i) {
        batches.insert(range.first() + i);
      }
    }
    request.set_assignment_version(response.assignment_version());
    request.set_completed_steps(response.granted_steps());
    request.set_started_steps(response.granted_steps());
  }
  EXPECT_EQ(batches.size(), 20u);
  EXPECT_EQ(chief().Status(now_).global_step(), 20);
}

TEST_F(ClaimsTest, TheManifestHasTheUnfinishedBatches) {
  StartTraining();
  ASSERT_OK(Claim(worker0_, 0, 12));
  ASSERT_OK(Claim(worker1_, 0, 2));
  ASSERT_OK(Claim(worker0_, 10, 0));
  const durable::CheckpointManifest manifest = NextCheckpoint().manifest;
  ASSERT_EQ(manifest.global_step(), 10);
  ASSERT_EQ(manifest.unfinished_batch_size(), 1);
  EXPECT_EQ(manifest.unfinished_batch(0).first(), 10);
  EXPECT_EQ(manifest.unfinished_batch(0).count(), 2 + 4 + 2 + 4)
      << "two of each worker, and those that are told in advance";
}

TEST_F(ClaimsTest, AFailureOfAProcessThatNeverRegisteredIsRefused) {
  StartTraining();
  wire::ReportFailureRequest request;
  request.set_message("nonsense");
  *request.mutable_task() = Task("worker", 0, 77);
  EXPECT_THAT(chief().ReportFailure(request, now_),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_EQ(phase(), wire::TRAINING);
  *request.mutable_task() = worker0_;
  EXPECT_OK(chief().ReportFailure(request, now_));
  EXPECT_EQ(phase(), wire::FAILED);
}

TEST_F(ClaimsTest, AFailureOfAWorkerWhoseLeaseHasJustRunOutCounts) {
  StartTraining();
  Pass(absl::Seconds(11), {ps0_, ps1_, worker1_});
  wire::ReportFailureRequest request;
  request.set_message("loss is not finite");
  *request.mutable_task() = worker0_;
  EXPECT_OK(chief().ReportFailure(request, now_));
  EXPECT_EQ(phase(), wire::FAILED);
}

TEST_F(ClaimsTest, AddressesHaveALimitAndTheStatusHasNoIncarnations) {
  wire::RegisterRequest request;
  *request.mutable_task() = worker0_;
  request.set_metrics_address(std::string(50 << 20, 'a'));
  EXPECT_THAT(chief().Register(request, now_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("metrics_address has 52428800 bytes")));
  RegisterWorkers();
  const wire::JobStatus status = chief().Status(now_);
  for (const wire::TaskStatus& task : status.task()) {
    EXPECT_EQ(task.task().incarnation(), 0u);
  }
}

TEST_F(ClaimsTest, AnIncarnationHasOnePlace) {
  RegisterWorkers();
  EXPECT_THAT(
      Register(Task("worker", 1, worker0_.incarnation())),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("of worker/0")));
}

TEST_F(ClaimsTest, OnlyWorkersClaim) {
  StartTraining();
  EXPECT_THAT(Claim(ps0_, 100, 0),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("ps/0")));
}

}  // namespace
}  // namespace parasol
