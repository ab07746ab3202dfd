#include "storage/directory_ownership.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/directory_owner.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A clock on which waits take no time.
class QuickClock : public SimulatedClock {
 public:
  bool AwaitWithTimeout(absl::Mutex& mu, const absl::Condition& condition,
                        absl::Duration timeout) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    Advance(timeout);
    return SimulatedClock::AwaitWithTimeout(mu, condition,
                                            absl::ZeroDuration());
  }
};

class DirectoryOwnershipTest : public testing::Test {
 protected:
  DirectoryOwnershipTest() { std::filesystem::remove_all(directory_); }

  absl::StatusOr<std::unique_ptr<DirectoryOwnership>> Take(Clock& clock) {
    return DirectoryOwnership::Take(
        {.directory = directory_, .job_name = "mnist"}, clock);
  }
  durable::DirectoryOwner Owner() {
    auto sight = LookAtOwner(directory_);
    EXPECT_OK(sight);
    return sight->owner.value_or(durable::DirectoryOwner());
  }

  const std::string directory_ = absl::StrCat(
      testing::TempDir(), "/ownership_",
      testing::UnitTest::GetInstance()->current_test_info()->name());
  // A clock that stands still: its owner never renews.
  SimulatedClock still_;
};

TEST_F(DirectoryOwnershipTest, TheOwnerIsNamedAndThenReleased) {
  ASSERT_OK_AND_ASSIGN(auto first, Take(still_));
  EXPECT_EQ(Owner().chief_epoch(), first->chief_epoch());
  EXPECT_EQ(Owner().process_id(), getpid());
  EXPECT_EQ(Owner().job_name(), "mnist");
  EXPECT_FALSE(Owner().released());
  EXPECT_FALSE(DirectoryLock::TryExclude(directory_).has_value());
  const int64_t epoch = first->chief_epoch();
  first.reset();
  EXPECT_TRUE(Owner().released());
  EXPECT_TRUE(DirectoryLock::TryExclude(directory_).has_value());

  QuickClock clock;
  ASSERT_OK_AND_ASSIGN(auto second, Take(clock));
  EXPECT_EQ(second->chief_epoch(), epoch + 1);
}

TEST_F(DirectoryOwnershipTest, ASecondProcessIsRefusedAndToldTheFirst) {
  auto first = DirectoryOwnership::Take({.directory = directory_,
                                         .job_name = "mnist",
                                         .lease = absl::Milliseconds(50)},
                                        Clock::Real());
  ASSERT_OK(first);
  EXPECT_THAT(
      Take(Clock::Real()).status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr(directory_),
                     HasSubstr(absl::StrCat("process ", getpid(), " on ")),
                     HasSubstr("job mnist, since 20"),
                     HasSubstr("which is alive"))));
  EXPECT_OK((*first)->Check());
}

TEST_F(DirectoryOwnershipTest, AProcessThatWasKilledIsReplacedAtOnce) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer starts no threads in a forked process";
#endif
  const pid_t child = fork();
  if (child == 0) {
    const auto owned = Take(Clock::Real());
    kill(getpid(), owned.ok() ? SIGKILL : SIGTERM);
  }
  int end = 0;
  ASSERT_EQ(waitpid(child, &end, 0), child);
  ASSERT_EQ(WTERMSIG(end), SIGKILL);
  EXPECT_EQ(Owner().process_id(), child);
  EXPECT_FALSE(Owner().released());
  const int64_t epoch = Owner().chief_epoch();

  ASSERT_OK_AND_ASSIGN(auto successor, Take(still_));
  EXPECT_EQ(successor->chief_epoch(), epoch + 1);
}

TEST_F(DirectoryOwnershipTest, OneThatStandsStillLosesItAfterALease) {
  ASSERT_OK_AND_ASSIGN(auto stopped, Take(still_));
  std::vector<std::string> waits;
  QuickClock clock;
  ASSERT_OK_AND_ASSIGN(
      auto successor,
      DirectoryOwnership::Take(
          {.directory = directory_,
           .on_wait =
               [&](absl::string_view wait) { waits.emplace_back(wait); }},
          clock));
  EXPECT_EQ(successor->chief_epoch(), stopped->chief_epoch() + 1);
  ASSERT_FALSE(waits.empty());
  EXPECT_THAT(waits.front(), HasSubstr("waiting up to 15s for a sign of life"));

  EXPECT_THAT(stopped->Check(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr(directory_), HasSubstr("touches"))));
  absl::Notification lost;
  stopped->OnLost([&](absl::Status) { lost.Notify(); });
  lost.WaitForNotification();
  EXPECT_THAT(stopped->Record("run", {}),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  stopped.reset();
  EXPECT_FALSE(Owner().released());
  EXPECT_OK(successor->Check());
}

// The clock stands still: only a look on request can find the successor.
TEST_F(DirectoryOwnershipTest, AnotherThreadLooksOnRequest) {
  ASSERT_OK_AND_ASSIGN(auto stopped, Take(still_));
  EXPECT_OK(stopped->CheckWithin(absl::Hours(1)));
  EXPECT_OK(stopped->CheckWithin(absl::Hours(1)));
  QuickClock clock;
  ASSERT_OK_AND_ASSIGN(auto successor, Take(clock));
  EXPECT_THAT(
      stopped->CheckWithin(absl::Hours(1)),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("belongs to")));
  successor->StopRenewal();
  EXPECT_OK(successor->CheckWithin(absl::ZeroDuration())) << "nobody looks";
}

TEST_F(DirectoryOwnershipTest, AWaitEndsWhenItIsCancelled) {
  ASSERT_OK_AND_ASSIGN(auto first, Take(still_));
  EXPECT_THAT(
      DirectoryOwnership::Take(
          {.directory = directory_, .cancelled = [] { return true; }}, still_)
          .status(),
      StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(DirectoryOwnershipTest, ADirectoryThatWasRemovedStaysItsOwners) {
  ASSERT_OK_AND_ASSIGN(auto owner, Take(still_));
  std::filesystem::remove_all(directory_);
  EXPECT_OK(owner->Check());
  EXPECT_FALSE(std::filesystem::exists(directory_));

  std::filesystem::create_directories(directory_);
  EXPECT_OK(owner->Check());
  EXPECT_EQ(Owner().chief_epoch(), owner->chief_epoch());
  EXPECT_FALSE(DirectoryLock::TryExclude(directory_).has_value());
  // The lock was taken anew, too: the next one has to wait.
  EXPECT_THAT(
      DirectoryOwnership::Take(
          {.directory = directory_, .cancelled = [] { return true; }}, still_)
          .status(),
      StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(DirectoryOwnershipTest, TheNextOwnerKnowsThePlacesOfThePs) {
  {
    ASSERT_OK_AND_ASSIGN(auto owner, Take(still_));
    EXPECT_TRUE(owner->ps_at_start().empty());
    durable::PlaceEpoch place;
    place.set_index(3);
    place.set_place_epoch(7);
    ASSERT_OK(owner->Record("run-a", {place}));
  }
  ASSERT_OK_AND_ASSIGN(auto next, Take(still_));
  ASSERT_EQ(next->ps_at_start().size(), 1u);
  EXPECT_EQ(next->ps_at_start()[0].index(), 3);
  EXPECT_EQ(next->ps_at_start()[0].place_epoch(), 7);
  EXPECT_EQ(Owner().run_id(), "run-a");
}

TEST_F(DirectoryOwnershipTest, StandbysAndProcessesOfPlacesAreRecordedApart) {
  durable::PlaceEpoch process;
  process.set_index(3);
  process.set_place_epoch(7);
  durable::PlaceEpoch standby;
  standby.set_index(3);
  standby.set_standby(99);
  standby.set_standby_index(4);
  {
    ASSERT_OK_AND_ASSIGN(auto owner, Take(still_));
    ASSERT_OK(owner->Record("run-a", {process}));
    ASSERT_OK(owner->RecordStandbys("run-a", {standby}));
    process.set_place_epoch(8);
    ASSERT_OK(owner->Record("run-a", {process}));
  }
  {
    ASSERT_OK_AND_ASSIGN(auto next, Take(still_));
    EXPECT_EQ(next->run_at_start(), "run-a");
    ASSERT_EQ(next->ps_at_start().size(), 1u);
    EXPECT_EQ(next->ps_at_start()[0].place_epoch(), 8);
    EXPECT_EQ(next->ps_at_start()[0].standby(), 99u);
    EXPECT_EQ(next->ps_at_start()[0].standby_index(), 4);
    // Another run's shards have no standby.
    ASSERT_OK(next->Record("run-b", {process}));
  }
  ASSERT_OK_AND_ASSIGN(auto last, Take(still_));
  EXPECT_EQ(last->ps_at_start()[0].standby(), 0u);
}

TEST_F(DirectoryOwnershipTest, EpochsGrowThoughTheFileIsLost) {
  still_.Advance(absl::FromUnixSeconds(1800000000) - still_.Now());
  int64_t epoch;
  {
    ASSERT_OK_AND_ASSIGN(auto owner, Take(still_));
    epoch = owner->chief_epoch();
  }
  std::filesystem::remove_all(directory_);
  still_.Advance(absl::Seconds(1));
  ASSERT_OK_AND_ASSIGN(auto next, Take(still_));
  EXPECT_GT(next->chief_epoch(), epoch);
  EXPECT_LT(next->chief_epoch(), 1 << 30);
}

TEST_F(DirectoryOwnershipTest, EpochsThatNoProcessHasAreNamed) {
  ASSERT_TRUE(std::filesystem::create_directory(directory_));
  durable::DirectoryOwner owner;
  owner.set_released(true);
  QuickClock clock;
  for (const int64_t epoch :
       {int64_t{-1}, INT64_MIN, INT64_MAX, int64_t{1} << 62, kMaxChiefEpoch}) {
    owner.set_chief_epoch(epoch);
    ASSERT_OK(WriteOwner(directory_, owner));
    EXPECT_THAT(
        Take(clock).status(),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 AllOf(HasSubstr("/CHIEF: "),
                       HasSubstr(absl::StrCat("chief_epoch ", epoch)))));
  }
  owner.set_chief_epoch(5);
  durable::PlaceEpoch& place = *owner.add_ps();
  place.set_index(1);
  for (const int64_t epoch : {int64_t{-1}, INT64_MAX, int64_t{6} << 32}) {
    place.set_place_epoch(epoch);
    ASSERT_OK(WriteOwner(directory_, owner));
    EXPECT_THAT(Take(clock).status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr(absl::StrCat("of ps/1 ", epoch))));
  }
  place.set_place_epoch((int64_t{5} << 32) + 3);
  ASSERT_OK(WriteOwner(directory_, owner));
  ASSERT_OK_AND_ASSIGN(const auto taken, Take(clock));
  EXPECT_EQ(taken->chief_epoch(), 6);
  // What another program writes while it is in use is no owner.
  owner.set_chief_epoch(INT64_MAX);
  ASSERT_OK(WriteOwner(directory_, owner));
  EXPECT_OK(taken->Check());
  EXPECT_EQ(Owner().chief_epoch(), 6);
}

TEST_F(DirectoryOwnershipTest, ADirectoryThatCantBeWrittenIsNamed) {
  // The kernel lets nobody, root included, make files there.
  EXPECT_THAT(DirectoryOwnership::Take({.directory = "/sys"}, still_).status(),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       HasSubstr("checkpoint directory /sys")));
}

}  // namespace
}  // namespace parasol
