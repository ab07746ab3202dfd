#include "tool/publish/publishing_follower.h"

#include <cerrno>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "cluster/checkpoint/model/testing/model_checkpoint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/checkpoint_store.h"
#include "storage/testing/disk_faults.h"
#include "storage/testing/file_size_limit.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A clock that does not wait: each time that it is asked to, it does what the
// test says comes next. When nothing comes any more it ends the follower.
class ScriptedClock : public Clock {
 public:
  absl::Time Now() override { return absl::FromUnixSeconds(1'000'000'000); }

  bool AwaitWithTimeout(absl::Mutex& mu, const absl::Condition& condition,
                        absl::Duration timeout) override {
    waits_.push_back(timeout);
    if (next_ == script_.size()) return true;
    mu.Unlock();
    script_[next_++]();
    mu.Lock();
    return condition.Eval();
  }

  std::vector<std::function<void()>> script_;
  std::vector<absl::Duration> waits_;

 private:
  size_t next_ = 0;
};

class PublishingFollowerTest : public ::testing::Test {
 protected:
  PublishingFollowerTest() : root_(EmptyTestDirectory()) {
    fs::create_directory(Checkpoints());
  }

  std::string Checkpoints() const { return root_ + "/ckpt"; }
  std::string Out() const { return root_ + "/out"; }

  // Writes the checkpoint of a step.
  std::string Write(int64_t step, bool is_final = false) {
    ModelCheckpoint model;
    model.step = step;
    model.kernel[0] = static_cast<float>(step);
    model.is_final = is_final;
    EXPECT_OK(model.Write(Checkpoints()));
    return model.PathIn(Checkpoints());
  }

  void Damage(const std::string& checkpoint) {
    const std::string path = checkpoint + "/ps-0.sst";
    fs::resize_file(path, fs::file_size(path) - 1);
  }

  // Follows until the job's end, or until nothing is left in the clock's
  // script.
  absl::Status Follow() {
    steps_.clear();
    ASSIGN_OR_RETURN(Publisher publisher,
                     Publisher::Open({.directory = Out()}));
    PublishingFollower follower(
        {.checkpoints = Checkpoints(), .poll_interval = absl::Seconds(2)},
        publisher,
        [this](const Publication& publication) {
          if (!publication.was_there) {
            steps_.push_back(publication.version.step);
          }
          on_publication_();
        },
        clock_);
    return follower.Run();
  }

  const std::string root_;
  ScriptedClock clock_;
  std::vector<int64_t> steps_;
  std::function<void()> on_publication_ = [] {};
};

TEST_F(PublishingFollowerTest, EachCheckpointIsPublishedOnceUntilTheLastOne) {
  Write(10);
  clock_.script_ = {[&] { Write(20); }, [] {},
                    [&] {
                      Write(30);
                      Write(40, /*is_final=*/true);
                    }};
  EXPECT_OK(Follow());
  EXPECT_THAT(steps_, ElementsAre(10, 20, 30, 40));
  EXPECT_THAT(clock_.waits_, ElementsAre(absl::Seconds(2), absl::Seconds(2),
                                         absl::Seconds(2)));
}

TEST_F(PublishingFollowerTest, SuccessorGoesOnBehindTheNewestVersion) {
  Write(10);
  Write(20);
  EXPECT_OK(Follow());
  Write(15);  // an older one that was not there: its turn is over
  Write(30);
  EXPECT_OK(Follow());
  EXPECT_THAT(steps_, ElementsAre(30));
}

TEST_F(PublishingFollowerTest, DamagedCheckpointIsPassedOver) {
  Write(10);
  Damage(Write(20));
  Write(30);
  EXPECT_OK(Follow());
  EXPECT_THAT(steps_, ElementsAre(10, 30));
}

// Listed, and gone when its turn comes.
TEST_F(PublishingFollowerTest, PrunedCheckpointIsPassedOver) {
  Write(10);
  const std::string pruned = Write(20);
  Write(30);
  on_publication_ = [&] { fs::remove_all(pruned); };
  EXPECT_OK(Follow());
  EXPECT_THAT(steps_, ElementsAre(10, 30));
}

TEST_F(PublishingFollowerTest, DamagedLastCheckpointIsTheResult) {
  Write(10);
  Damage(Write(20, /*is_final=*/true));
  EXPECT_THAT(Follow(), StatusIs(absl::StatusCode::kDataLoss,
                                 HasSubstr("last checkpoint is damaged")));
  EXPECT_THAT(steps_, ElementsAre(10));
}

TEST_F(PublishingFollowerTest, FullDiskIsTriedAgain) {
  Write(10);
  FileSizeLimit full(100);
  clock_.script_ = {[] {}, [&] { full.Lift(); }};
  const absl::Status status = Follow();
  full.Lift();
  EXPECT_OK(status);
  EXPECT_THAT(steps_, ElementsAre(10));
  // Less often than it looks for new ones.
  EXPECT_THAT(clock_.waits_, ElementsAre(absl::Seconds(5), absl::Seconds(5),
                                         absl::Seconds(2)));
}

// A newer one that has room would have the older one passed over.
TEST_F(PublishingFollowerTest, FullDiskEndsTheTurn) {
  ModelCheckpoint large;
  large.step = 10;
  large.shape = {100, 200};
  large.kernel.assign(20000, 1);
  large.m = large.v = large.kernel;
  ASSERT_OK(large.Write(Checkpoints()));
  Write(20);
  FileSizeLimit full(40000);
  clock_.script_ = {[&] { full.Lift(); }};
  const absl::Status status = Follow();
  full.Lift();
  EXPECT_OK(status);
  EXPECT_THAT(steps_, ElementsAre(10, 20));
}

TEST_F(PublishingFollowerTest, CheckpointOfAnotherRunEndsIt) {
  Write(10);
  EXPECT_OK(Follow());
  ModelCheckpoint other;
  other.step = 20;
  other.run_id = "another";
  ASSERT_OK(other.Write(Checkpoints()));
  EXPECT_THAT(Follow(), StatusIs(absl::StatusCode::kInvalidArgument,
                                 HasSubstr("run another")));
  EXPECT_THAT(steps_, IsEmpty());
}

// A run that begins again from nothing has earlier steps than the versions.
TEST_F(PublishingFollowerTest, EarlierStepOfAnotherRunEndsIt) {
  Write(1000);
  EXPECT_OK(Follow());
  fs::remove_all(Checkpoints());
  ModelCheckpoint other;
  other.step = 500;
  other.run_id = "another";
  for (const bool is_final : {false, true}) {
    other.is_final = is_final;
    fs::remove_all(Checkpoints());
    ASSERT_OK(other.Write(Checkpoints()));
    EXPECT_THAT(Follow(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("run another"),
                               HasSubstr(other.PathIn(Checkpoints())))));
    EXPECT_THAT(steps_, IsEmpty());
  }
}

TEST_F(PublishingFollowerTest, EarlierStepThatIsTheJobsLastEndsIt) {
  Write(1000);
  EXPECT_OK(Follow());
  fs::remove_all(Checkpoints());
  Write(400);
  const std::string last = Write(500, /*is_final=*/true);
  EXPECT_THAT(Follow(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                 AllOf(HasSubstr("is of step 1000, later than"),
                                       HasSubstr(last))));
  // The job goes on behind what was its last step.
  Write(1000);
  Write(1100, /*is_final=*/true);
  EXPECT_OK(Follow());
  EXPECT_THAT(steps_, ElementsAre(1100));
}

TEST_F(PublishingFollowerTest, StepThatIsTrainedAgainEndsIt) {
  Write(10);
  EXPECT_OK(Follow());
  fs::remove_all(Write(10));
  ModelCheckpoint again;
  again.step = 10;
  again.kernel[0] = -1;
  ASSERT_OK(again.Write(Checkpoints()));
  EXPECT_THAT(Follow(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                 HasSubstr("other bytes")));
}

TEST_F(PublishingFollowerTest, OneThatCannotBeReadHoldsUpNoNewerOne) {
  const std::string old = Write(10);
  Write(20);
  FailReadsOf(fs::canonical(old + "/ps-0.sst"), EIO);
  clock_.script_ = {[&] { Write(30, /*is_final=*/true); }};
  const absl::Status followed = Follow();
  FailReadsOf("", 0);
  EXPECT_OK(followed);
  EXPECT_THAT(steps_, ElementsAre(20, 30));
}

TEST_F(PublishingFollowerTest, OneCheckpointCannotBeFollowed) {
  const std::string one = Write(10);
  EXPECT_THAT(CheckCanBeFollowed(one),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr(one), HasSubstr("--follow"))));
  EXPECT_OK(CheckCanBeFollowed(Checkpoints()));
}

TEST_F(PublishingFollowerTest, StoppedOneEnds) {
  Write(10);
  ASSERT_OK_AND_ASSIGN(Publisher publisher,
                       Publisher::Open({.directory = Out()}));
  PublishingFollower follower(
      {.checkpoints = Checkpoints()}, publisher, [](const Publication&) {},
      Clock::Real());
  follower.Stop();
  EXPECT_OK(follower.Run());
  EXPECT_EQ(publisher.newest_step(), -1);
}

TEST_F(PublishingFollowerTest, DirectoryMustBeThere) {
  fs::remove_all(Checkpoints());
  EXPECT_THAT(Follow(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(Checkpoints())));
}

}  // namespace
}  // namespace parasol
