// A coordinator whose training set grows.

#include <string>
#include <utility>

#include "base/status_matchers.h"
#include "coordinator/followed_run.h"
#include "coordinator/testing/coordinator_fixture.h"
#include "gmock/gmock.h"

namespace parasol {
namespace {

using coordinator_testing::CoordinatorTest;
using coordinator_testing::kRun;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class FollowedTest : public CoordinatorTest {
 protected:
  FollowedTest() {
    job::Dataset& train = *options_.job.mutable_train();
    train.set_follow(true);
    train.set_batch_size(4);
    train.mutable_csv()->add_file("clicks/*.csv");
    options_.job.mutable_end()->Clear();
    options_.job.mutable_end()->mutable_never();
    options_.followed = FollowedFiles();
  }

  void AddFile(const std::string& path, int64_t records) {
    FollowedLook look;
    look.files = {files_.Next(path, 1, records, 4)};
    ASSERT_OK(files_.Add(look.files[0]));
    EXPECT_TRUE(chief().Follow(look, now_));
  }

  FollowedFiles files_;  // as the follower has them
};

TEST_F(FollowedTest, AJobWaitsForDataAndNobodyIsToBlame) {
  StartTraining();
  now_ += absl::Seconds(5);
  Tick();
  EXPECT_FALSE(chief().Status(now_).followed().has_waited())
      << "it has not looked yet";
  EXPECT_TRUE(chief().Follow({}, now_));
  Tick();
  ASSERT_OK_AND_ASSIGN(auto claim, Claim(worker0_, 0, 10));
  EXPECT_EQ(claim.granted_steps(), 0);
  EXPECT_THAT(claim.awaited_task(), SizeIs(0));
  now_ += absl::Seconds(3);
  wire::JobStatus status = chief().Status(now_);
  EXPECT_EQ(status.phase(), wire::TRAINING);
  EXPECT_EQ(status.end_step(), 0) << "it has none";
  EXPECT_EQ(status.followed().waited().seconds(), 3);
  EXPECT_EQ(status.followed().pattern(), "clicks/*.csv");
  EXPECT_FALSE(status.has_waited());

  const int64_t news = chief().NewsAt(now_).claims;
  AddFile("clicks/1.csv", 9);
  EXPECT_NE(chief().NewsAt(now_).claims, news);
  ASSERT_OK_AND_ASSIGN(claim, Claim(worker0_, 0, 1));
  EXPECT_EQ(claim.granted_steps(), 1);
  ASSERT_THAT(claim.file(), SizeIs(1));
  EXPECT_EQ(claim.file(0).path(), "clicks/1.csv");
  Tick();
  status = chief().Status(now_);
  EXPECT_FALSE(status.followed().has_waited());
  EXPECT_EQ(status.followed().files(), 1);
  EXPECT_EQ(status.followed().waiting_records(), 9);
}

TEST_F(FollowedTest, ACheckpointHasThePositionAndTheNextChiefGoesOn) {
  StartTraining();
  AddFile("1", 8);
  AddFile("2", 40);
  TrainTo(10);
  Tick();
  const CheckpointOrder order = NextCheckpoint();
  const durable::FollowedSet& set = order.manifest.followed();
  EXPECT_EQ(set.batches(), 12);
  EXPECT_EQ(set.last_path(), "2");
  ASSERT_THAT(set.file(), SizeIs(1));
  EXPECT_EQ(set.file(0).path(), "2");

  options_.resumed = order.manifest;
  *options_.resumed->mutable_job() = options_.job;
  ASSERT_OK(ResumeFollowed(options_));
  EXPECT_EQ(options_.followed->batches(), 12);
  chief_.reset();
  RegisterPs(kRun);
  RegisterWorkers();
  FinishLoad(NextLoad());
  now_ += absl::Seconds(3);
  Tick();
  ASSERT_OK_AND_ASSIGN(const auto claim, Claim(worker0_, 0, 10));
  EXPECT_GT(claim.granted_steps(), 0);
  ASSERT_THAT(claim.file(), SizeIs(1));
  EXPECT_EQ(claim.file(0).path(), "2");
}

TEST_F(FollowedTest, AWorkerThatKnowsBatchesThatThereAreNotStartsAgain) {
  StartTraining();
  AddFile("1", 8);
  wire::ClaimStepsRequest request;
  *request.mutable_task() = worker0_;
  request.set_known_batches(2);
  EXPECT_OK(chief().ClaimSteps(request, now_));
  for (const int64_t known : {int64_t{3}, int64_t{-1}, INT64_MAX}) {
    request.set_known_batches(known);
    EXPECT_THAT(chief().ClaimSteps(request, now_),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr("there are 2 batches")));
  }
}

TEST_F(FollowedTest, AFileOfNoUseFailsTheJob) {
  StartTraining();
  FollowedLook look;
  look.failure = absl::InvalidArgumentError("train.follow: 1.csv: no column y");
  chief().Follow(look, now_);
  EXPECT_EQ(phase(), wire::FAILED);
  EXPECT_THAT(chief().Status(now_).failure(), HasSubstr("1.csv"));
}

TEST_F(FollowedTest, AFileOfNoUseComesTooLateForAJobWhoseStepsAreDone) {
  options_.job.mutable_end()->Clear();
  options_.job.mutable_end()->set_steps(2);
  StartTraining();
  AddFile("1", 8);
  TrainTo(2);
  Tick();
  ASSERT_EQ(phase(), wire::FINISHING);
  FollowedLook look;
  look.failure = absl::InvalidArgumentError("train.follow: 2.csv: no column y");
  chief().Follow(look, now_);
  EXPECT_EQ(phase(), wire::FINISHING);
}

TEST_F(FollowedTest, AnotherSizeOfBatchesNeedsThatAllIsTrained) {
  Resume(12);
  *options_.resumed->mutable_job() = options_.job;
  files_ = FollowedFiles(10);
  ASSERT_OK(files_.Add(files_.Next("3", 1, 20, 4)));
  files_.AddTo(*options_.resumed->mutable_followed());
  options_.job.mutable_train()->set_batch_size(8);
  EXPECT_THAT(ResumeFollowed(options_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("train.batch_size is 8")));
  files_.Forget(15);
  options_.resumed->clear_followed();
  files_.AddTo(*options_.resumed->mutable_followed());
  ASSERT_OK(ResumeFollowed(options_));
  EXPECT_EQ(options_.followed->batches(), 15);
}

TEST_F(FollowedTest, SoDoesAFileThatWasTakenAfterTheCheckpoint) {
  Resume(12);
  *options_.resumed->mutable_job() = options_.job;
  FollowedFiles(12).AddTo(*options_.resumed->mutable_followed());
  options_.job.mutable_train()->set_batch_size(8);
  ASSERT_OK(ResumeFollowed(options_));
  // As the chief's log has it.
  ASSERT_OK(options_.followed->Add(options_.followed->Next("4", 1, 20, 4)));
  EXPECT_THAT(
      CheckFollowed(options_),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("train.batch_size is 8"),
                     HasSubstr("20 records of 4"), HasSubstr("5 batches"))));
  options_.job.mutable_train()->set_batch_size(4);
  EXPECT_OK(CheckFollowed(options_));
}

// 9 records are as many batches of 3 as of 4, but other ones.
TEST_F(FollowedTest, AFileTrainedInPartNeedsItsOwnSizeOfBatches) {
  Resume(1);
  *options_.resumed->mutable_job() = options_.job;
  ASSERT_OK(files_.Add(files_.Next("1", 1, 9, 4)));
  files_.AddTo(*options_.resumed->mutable_followed());
  options_.job.mutable_train()->set_batch_size(3);
  EXPECT_THAT(ResumeFollowed(options_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is 3")));
}

TEST_F(FollowedTest, AFileOfWhichTheCheckpointHasAllBatchesIsTrained) {
  Resume(3);
  *options_.resumed->mutable_job() = options_.job;
  ASSERT_OK(files_.Add(files_.Next("1", 1, 9, 4)));
  files_.AddTo(*options_.resumed->mutable_followed());
  options_.job.mutable_train()->set_batch_size(3);
  EXPECT_OK(ResumeFollowed(options_));
  options_.job.set_seed(options_.job.seed() + 1);
  EXPECT_OK(ResumeFollowed(options_));
  options_.job.set_seed(options_.job.seed() - 1);
  durable::BatchSpan& lent = *options_.resumed->add_unfinished_batch();
  lent.set_first(1);
  lent.set_count(1);
  EXPECT_THAT(ResumeFollowed(options_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is 3")));
}

// Batch 5 of another order has other records.
TEST_F(FollowedTest, AFileTrainedInPartNeedsItsOwnOrder) {
  Resume(1);
  *options_.resumed->mutable_job() = options_.job;
  ASSERT_OK(files_.Add(files_.Next("1", 1, 9, 4)));
  files_.AddTo(*options_.resumed->mutable_followed());
  options_.job.set_seed(options_.job.seed() + 1);
  EXPECT_THAT(ResumeFollowed(options_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("seed is "),
                             HasSubstr("the 9 records of 1, which"))));
  options_.job = options_.resumed->job();
  options_.job.mutable_train()->set_shuffle_buffer(77);
  EXPECT_THAT(ResumeFollowed(options_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("train.shuffle_buffer is 77")));
  files_.Forget(files_.batches());
  options_.resumed->clear_followed();
  files_.AddTo(*options_.resumed->mutable_followed());
  EXPECT_OK(ResumeFollowed(options_)) << "all is trained";
}

TEST_F(FollowedTest, ARunDoesNotCeaseToFollow) {
  Resume(12);
  *options_.resumed->mutable_job() = options_.job;
  durable::FollowedSet& set = *options_.resumed->mutable_followed();
  set.set_batches(12);
  options_.job.mutable_train()->clear_follow();
  EXPECT_OK(ResumeFollowed(options_)) << "nothing is taken yet";
  *options_.resumed->mutable_followed() = set;
  options_.resumed->mutable_followed()->set_last_path("clicks/3.csv");
  EXPECT_THAT(
      ResumeFollowed(options_),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("train.follow is not set"),
                     HasSubstr("clicks/*.csv"), HasSubstr("warm_start"))));
}

TEST_F(FollowedTest, ARunFollowsTheFilesThatItHasFollowed) {
  Resume(12);
  *options_.resumed->mutable_job() = options_.job;
  durable::FollowedSet& set = *options_.resumed->mutable_followed();
  set.set_batches(12);
  options_.job.mutable_train()->mutable_csv()->set_file(0, "views/*.csv");
  EXPECT_OK(ResumeFollowed(options_)) << "nothing is taken yet";
  // As the chief's log has it.
  ASSERT_OK(
      options_.followed->Add(options_.followed->Next("clicks/2.csv", 1, 4, 4)));
  EXPECT_THAT(CheckFollowed(options_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("are views/*.csv")));
  set.set_last_path("clicks/3.csv");
  EXPECT_THAT(ResumeFollowed(options_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("are views/*.csv"),
                             HasSubstr("has followed clicks/*.csv"))));
}

TEST_F(FollowedTest, ATopicStaysWhicheverBrokersAreNamed) {
  Resume(12);
  const auto name = [](job::Job& job, const std::string& topic) {
    job.mutable_train()->mutable_csv()->set_file(0, topic);
  };
  name(options_.job, "kafka://a:1,b:1/clicks");
  *options_.resumed->mutable_job() = options_.job;
  durable::FollowedSet& set = *options_.resumed->mutable_followed();
  set.set_batches(12);
  set.set_last_path("clicks/000000000003@0:0-48");
  name(options_.job, "kafka://c:1/clicks");
  EXPECT_OK(ResumeFollowed(options_));
  for (const char* const other : {"kafka://a:1,b:1/views", "clicks/*.csv"}) {
    name(options_.job, other);
    EXPECT_THAT(ResumeFollowed(options_),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("has followed kafka://a:1,b:1/clicks")));
  }
}

TEST_F(FollowedTest, AJobOfAnotherKindBeginsWithItsFirstFile) {
  Resume(12);
  options_.resumed->add_unfinished_batch()->set_count(3);
  ASSERT_OK(ResumeFollowed(options_));
  EXPECT_EQ(options_.followed->batches(), 12);
  EXPECT_EQ(options_.followed->last_path(), "");
  EXPECT_THAT(options_.resumed->unfinished_batch(), SizeIs(0));

  options_.followed.reset();
  options_.resumed->mutable_followed()->set_batches(12);
  options_.resumed->add_unfinished_batch()->set_count(3);
  options_.job.mutable_train()->clear_follow();
  ASSERT_OK(ResumeFollowed(options_));
  EXPECT_FALSE(options_.followed);
  EXPECT_THAT(options_.resumed->unfinished_batch(), SizeIs(0));
}

}  // namespace
}  // namespace parasol
