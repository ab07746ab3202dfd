#include "chief/data_follower.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/status_matchers.h"
#include "chief/testing/follower_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kJob[] = R"(
  name: "followed"
  model {
    input { name: "x" dense { column { name: "x" } } }
    layer { input: "x" dense { units: 1 } }
    loss { mean_squared_error {} }
  }
  train {
    csv { file: "in/*.csv" label { column: "y" } }
    follow: true
    batch_size: 4
  }
  end { never {} }
)";

class DataFollowerTest : public FollowerFixture {
 protected:
  DataFollowerTest() : FollowerFixture(kJob) {
    fs::create_directories(directory_ + "/in");
  }

  void Start(Clock& clock = Clock::Real()) {
    DataFollower::Options options;
    options.check_owner = check_owner_;
    options.count = count_;
    StartWith(std::move(options), clock);
  }
  void AwaitFiles(size_t count) {
    Await([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      return taken_.size() >= count;
    });
  }
  std::string FirstTrouble() {
    absl::MutexLock lock(&mu_);
    return troubles_.at(0);
  }
  // Moves a file in when it is whole.
  void MoveIn(const std::string& name, const std::string& text) {
    std::ofstream(directory_ + "/part") << text;
    fs::rename(directory_ + "/part", directory_ + "/in/" + name);
  }

  std::function<absl::Status()> check_owner_ = [] { return absl::OkStatus(); };
  std::function<absl::StatusOr<int64_t>(const std::string&)> count_;
};

TEST_F(DataFollowerTest, TakesFilesAsTheyComeInTheOrderOfTheirNames) {
  MoveIn("b.csv", "x,y\n1,2\n3,4\n");
  MoveIn("a.csv", "x,y\n1,2\n");
  Start();
  AwaitFiles(2);
  MoveIn("d.csv", "");
  MoveIn("e.csv", "x,y\n");
  MoveIn("f.csv", "x,y\n1,2\n1,2\n1,2\n1,2\n1,2\n");
  MoveIn("no_csv", "x,y\n1,2\n");
  AwaitFiles(5);
  EXPECT_THAT(taken_, ElementsAre("in/a.csv:1", "in/b.csv:2", "in/d.csv:0",
                                  "in/e.csv:0", "in/f.csv:5"));
  EXPECT_EQ(files_.batches(), 4);
}

TEST_F(DataFollowerTest, TheNextChiefGoesOnWhereThisOneWas) {
  MoveIn("a.csv", "x,y\n1,2\n");
  Start();
  AwaitFiles(1);
  follower_.reset();
  MoveIn("b.csv", "x,y\n1,2\n");
  files_ = FollowedFiles();
  Start();
  AwaitFiles(2);
  EXPECT_THAT(taken_, ElementsAre("in/a.csv:1", "in/b.csv:1"));
  EXPECT_EQ(files_.batches(), 2);
}

TEST_F(DataFollowerTest, TakesNoMoreThanThereIsRoomFor) {
  room_ = 2;
  for (const char* name : {"a.csv", "b.csv", "c.csv"}) {
    MoveIn(name, "x,y\n1,2\n");
  }
  Start();
  Await([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return taken_.size() == 2 && look_.left == 1;
  });
  {
    absl::MutexLock lock(&mu_);
    room_ = 3;
  }
  AwaitFiles(3);
}

TEST_F(DataFollowerTest, AFileThatComesLateIsLeftOutAndNamed) {
  MoveIn("m.csv", "x,y\n1,2\n");
  Start();
  AwaitFiles(1);
  Await([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return look_.files.empty() && look_.left == 0;
  });
  MoveIn("a.csv", "x,y\n1,2\n");
  Await([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return look_.skipped == 1; });
  EXPECT_THAT(Last().skipped_why, HasSubstr("a.csv has come too late"));
  EXPECT_THAT(taken_, ElementsAre("in/m.csv:1"));
}

// It would hold up what comes behind it for ever.
TEST_F(DataFollowerTest, ALinkToItselfIsLeftOutAndNamed) {
  fs::create_symlink("a.csv", directory_ + "/in/a.csv");
  MoveIn("b.csv", "x,y\n1,2\n");
  Start();
  AwaitFiles(1);
  EXPECT_THAT(taken_, ElementsAre("in/b.csv:1"));
  EXPECT_THAT(Last().skipped_why,
              AllOf(HasSubstr("in/a.csv"), HasSubstr("symbolic links")));
}

TEST_F(DataFollowerTest, AFileThatGrowsAfterItWasTakenIsNamed) {
  MoveIn("a.csv", "");
  MoveIn("b.csv", "x,y\n1,2\n");
  Start();
  AwaitFiles(2);
  MoveIn("a.csv", "x,y\n1,2\n");
  Await([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return look_.skipped == 1; });
  EXPECT_THAT(Last().skipped_why,
              AllOf(HasSubstr("in/a.csv has 8 bytes, but had 0 when"),
                    HasSubstr("rename it when it is whole")));
  follower_.reset();
  // The next chief looks, too.
  std::ofstream(directory_ + "/in/b.csv", std::ios::app) << "3,4\n";
  look_ = FollowedLook();
  files_ = FollowedFiles();
  Start();
  Await([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return look_.skipped == 2; });
  follower_->Stop();
  EXPECT_THAT(Last().skipped_why, HasSubstr("in/b.csv has 12 bytes"));
}

TEST_F(DataFollowerTest, TheNextChiefNamesFilesThatCameLateToo) {
  MoveIn("b.csv", "x,y\n1,2\n");
  MoveIn("m.csv", "x,y\n1,2\n");
  Start();
  AwaitFiles(2);
  follower_.reset();
  MoveIn("a.csv", "x,y\n1,2\n");
  MoveIn("c.csv", "x,y\n1,2\n");
  look_ = FollowedLook();
  files_ = FollowedFiles();
  Start();
  Await([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return look_.skipped > 0; });
  follower_->Stop();
  EXPECT_EQ(Last().skipped, 2) << "a.csv, too: all that were taken are known";
  EXPECT_THAT(Last().skipped_why, HasSubstr("c.csv has come too late"));
}

TEST_F(DataFollowerTest, AFileThatChangesWhileItIsReadIsTakenWhenItStays) {
  int counts = 0;
  count_ = [&](const std::string& name) {
    if (++counts < 3)
      std::ofstream(directory_ + "/" + name, std::ios::app) << "3,4\n";
    return counts;
  };
  MoveIn("a.csv", "x,y\n1,2\n");
  MoveIn("b.csv", "x,y\n1,2\n");
  Start();
  AwaitFiles(2);
  follower_->Stop();
  EXPECT_THAT(taken_, ElementsAre("in/a.csv:3", "in/b.csv:4"));
  EXPECT_THAT(troubles_, Contains(HasSubstr("a.csv changes while it is read")));
  EXPECT_EQ(Last().skipped, 0);
}

TEST_F(DataFollowerTest, AFileThatMayNotBeReadIsWaitedFor) {
  int counts = 0;
  count_ = [&](const std::string& name) -> absl::StatusOr<int64_t> {
    if (++counts < 3) return absl::PermissionDeniedError("may not read");
    return 5;
  };
  MoveIn("a.csv", "x,y\n1,2\n");
  Start();
  AwaitFiles(1);
  follower_->Stop();
  EXPECT_THAT(taken_, ElementsAre("in/a.csv:5"));
  EXPECT_THAT(troubles_, Contains(HasSubstr("in/a.csv: may not read")));
  EXPECT_OK(Last().failure);
}

TEST_F(DataFollowerTest, ADirectoryWithAnotherOwnerGetsNoLine) {
  absl::Status owner = absl::FailedPreconditionError("another owner");
  check_owner_ = [&] {
    absl::MutexLock lock(&mu_);
    return owner;
  };
  MoveIn("a.csv", "x,y\n1,2\n");
  Start();
  Await([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return !troubles_.empty(); });
  EXPECT_THAT(FirstTrouble(), AllOf(HasSubstr("can't record in/a.csv"),
                                    HasSubstr("another owner")));
  EXPECT_FALSE(fs::exists(directory_ + "/followed.jsonl"));
  {
    absl::MutexLock lock(&mu_);
    EXPECT_THAT(taken_, IsEmpty());
    owner = absl::OkStatus();
  }
  AwaitFiles(1);
}

TEST_F(DataFollowerTest, AFolderThatIsNotThereIsNamedAndWaitedFor) {
  fs::rename(directory_ + "/in", directory_ + "/away");
  Start();
  Await([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return !troubles_.empty(); });
  EXPECT_THAT(FirstTrouble(),
              AllOf(HasSubstr("no folder " + directory_ + "/in"),
                    HasSubstr("--data_dir=" + directory_)));
  std::ofstream(directory_ + "/away/a.csv") << "x,y\n1,2\n";
  fs::rename(directory_ + "/away", directory_ + "/in");
  AwaitFiles(1);
  follower_->Stop();
  EXPECT_EQ(Last().skipped, 0);
}

// A clock that a look takes time of, and whose waits are short.
class SteppedClock : public Clock {
 public:
  explicit SteppedClock(absl::Duration step) : step_(step) {}
  absl::Time Now() override {
    absl::MutexLock lock(&now_mu_);
    return now_ += step_;
  }
  bool AwaitWithTimeout(absl::Mutex& mu, const absl::Condition& condition,
                        absl::Duration timeout) override {
    {
      absl::MutexLock lock(&now_mu_);
      now_ += timeout;
      waits_.push_back(timeout);
    }
    return mu.AwaitWithTimeout(condition, absl::Milliseconds(1));
  }
  void Advance(absl::Duration time) {
    absl::MutexLock lock(&now_mu_);
    now_ += time;
  }
  std::vector<absl::Duration> waits() {
    absl::MutexLock lock(&now_mu_);
    return waits_;
  }

 private:
  const absl::Duration step_;
  absl::Mutex now_mu_;
  absl::Time now_ = absl::FromUnixSeconds(1000);
  std::vector<absl::Duration> waits_;
};

TEST_F(DataFollowerTest, WhatCountingTakesDelaysNoLook) {
  SteppedClock clock(absl::ZeroDuration());
  absl::Time looked;
  absl::Time next;
  count_ = [&](const std::string& name) {
    // Between the counts there is one pause.
    (looked == absl::Time() ? looked : next) = clock.Now();
    if (next != absl::Time()) return 1;
    clock.Advance(absl::Seconds(100));
    MoveIn("b.csv", "x,y\n1,2\n");
    return 1;
  };
  MoveIn("a.csv", "x,y\n1,2\n");
  Start(clock);
  AwaitFiles(2);
  EXPECT_EQ(next - looked, absl::Seconds(100) + absl::Milliseconds(5));
  follower_.reset();
}

TEST_F(DataFollowerTest, ALookThatFindsNoRoomAsksForItSoon) {
  // To list the folders takes 100 s at least.
  SteppedClock clock(absl::Seconds(100));
  room_ = 1;
  MoveIn("a.csv", "x,y\n1,2\n");
  MoveIn("b.csv", "x,y\n1,2\n");
  Start(clock);
  Await([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return look_.left == 1; });
  {
    absl::MutexLock lock(&mu_);
    room_ = 3;
  }
  AwaitFiles(2);
  EXPECT_THAT(clock.waits(), testing::Each(testing::Le(absl::Milliseconds(5))));
  follower_.reset();
}

TEST_F(DataFollowerTest, AFileOfNoUseEndsTheJobByName) {
  MoveIn("a.csv", "x,z\n1,2\n");
  Start();
  Await([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return !look_.failure.ok(); });
  EXPECT_THAT(Last().failure,
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("a.csv")));
}

TEST_F(DataFollowerTest, ADamagedFileIsLeftOutIfCorruptRecordsAre) {
  job_.mutable_train()->set_on_corrupt(job::Dataset::SKIP);
  // The beginning of a gzip file.
  MoveIn("a.csv", std::string("\037\213\010\000\000\000\000\000\002\003\253\320"
                              "\251\344\062\324\061\342\062\326\061\341\002",
                              23));
  MoveIn("b.csv", "x,y\n1,2\n");
  Start();
  AwaitFiles(1);
  EXPECT_THAT(taken_, ElementsAre("in/b.csv:1"));
  EXPECT_EQ(Last().skipped, 1);
  EXPECT_THAT(Last().skipped_why, HasSubstr("a.csv"));
}

}  // namespace
}  // namespace parasol
