#include "coordinator/job_account.h"

#include <optional>

#include "base/status_matchers.h"
#include "cluster/rpc/proto_duration.h"
#include "coordinator/testing/job_parts.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class JobAccountTest : public coordinator_testing::JobPartsTest {
 protected:
  JobAccount& account() {
    if (!account_) account_.emplace(options_);
    return *account_;
  }
  wire::JobStatus Status() { return account().Status(View(), now_); }
  wire::Task PsAt(int index) const {
    wire::Task ps;
    ps.set_role("ps");
    ps.set_index(index);
    ps.set_incarnation(10 + index);
    return ps;
  }
  void RegisterAll() {
    for (const wire::Task& task : {PsAt(0), PsAt(1), worker_}) {
      ASSERT_OK(membership_->Register(task, {}, now_).status());
    }
  }

  std::optional<JobAccount> account_;
};

TEST_F(JobAccountTest, SaysThePhaseTheStepAndTheEnd) {
  Start();
  const wire::JobStatus status = Status();
  EXPECT_EQ(status.phase(), wire::LOADING);
  EXPECT_EQ(status.global_step(), 0);
  EXPECT_EQ(status.end_step(), 100);
  EXPECT_EQ(status.run_id(), "run");
  EXPECT_FALSE(status.has_trained());
}

TEST_F(JobAccountTest, SaysWhatIsMissingAndSinceWhen) {
  Start();
  account().Look(View(), now_);
  now_ += absl::Seconds(3);
  account().Look(View(), now_);
  const wire::JobStatus status = Status();
  EXPECT_THAT(status.missing_task(), ElementsAre("ps/0", "ps/1"));
  EXPECT_EQ(FromProto(status.waited()), absl::Seconds(3));
  RegisterAll();
  account().Look(View(), now_);
  EXPECT_THAT(Status().missing_task(), IsEmpty());
  EXPECT_FALSE(Status().has_waited());
}

TEST_F(JobAccountTest, ATroubleIsAWaitWhoseWordsMayChange) {
  Start();
  RegisterAll();
  orders_->LoadDone({1, 11}, absl::UnavailableError("gone"), *board_, now_);
  account().Look(View(), now_);
  now_ += absl::Seconds(3);
  orders_->LoadDone({1, 11}, absl::UnavailableError("slow"), *board_, now_);
  account().Look(View(), now_);
  EXPECT_EQ(Status().trouble(), "can't load ps/1: slow");
  EXPECT_EQ(Status().finding(0).kind(), wire::Finding::LOADING);
  EXPECT_EQ(FromProto(Status().waited()), absl::Seconds(3));
}

TEST_F(JobAccountTest, LossesOfAWorkerCountUntilItIsGone) {
  Start();
  wire::HeartbeatRequest heartbeat;
  *heartbeat.mutable_task() = worker_;
  heartbeat.set_loss(2);
  heartbeat.set_examples_per_second(50);
  account().Keep(heartbeat, now_);
  EXPECT_EQ(Status().loss(), 2);
  EXPECT_EQ(Status().examples_per_second(), 50);
  account().Forget(worker_.index());
  EXPECT_FALSE(Status().has_loss());
  EXPECT_EQ(Status().examples_per_second(), 0);
}

TEST_F(JobAccountTest, TasksAreThereOrAbsentFromTraining) {
  Start();
  RegisterAll();
  ASSERT_OK(membership_->Leave(worker_, now_).status());
  phases_->Enter(wire::TRAINING, now_);
  now_ += options_.absence_named;
  const wire::JobStatus status = Status();
  ASSERT_EQ(status.task_size(), 3);
  EXPECT_TRUE(status.task(0).alive());
  EXPECT_FALSE(status.task(2).alive());
  EXPECT_THAT(status.missing_task(), ElementsAre("worker/0"))
      << "the only one is no mere absence";
  EXPECT_THAT(status.absent_task(), IsEmpty());
  EXPECT_EQ(FromProto(status.trained()), options_.absence_named);
}

TEST_F(JobAccountTest, AJobThatHasEndedNamesThoseWhoStay) {
  Start();
  RegisterAll();
  EXPECT_THAT(Status().staying_task(), IsEmpty());
  phases_->Fail(absl::FailedPreconditionError("worker/0: nan"), now_);
  ASSERT_OK(membership_->Leave(worker_, now_).status());
  const wire::JobStatus status = Status();
  EXPECT_EQ(status.failure(), "worker/0: nan");
  EXPECT_THAT(status.staying_task(), ElementsAre("ps/0", "ps/1"));
  EXPECT_EQ(FromProto(status.staying_limit()), absl::Seconds(30));
  EXPECT_THAT(status.missing_task(), IsEmpty());
}

}  // namespace
}  // namespace parasol
