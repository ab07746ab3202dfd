#include "cluster/checkpoint/disk_patience.h"

#include <string>

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A clock on which waits take no time.
class QuickClock : public SimulatedClock {
 public:
  bool AwaitWithTimeout(absl::Mutex&, const absl::Condition& condition,
                        absl::Duration timeout) override
      ABSL_NO_THREAD_SAFETY_ANALYSIS {
    Advance(timeout);
    return condition.Eval();
  }
};

const absl::Status kStale = absl::UnavailableError("can't read /c: Stale");

TEST(DiskPatienceTest, WaitsGrowFromATenthToFiveSeconds) {
  QuickClock clock;
  DiskPatience patience({}, clock);
  for (const double seconds : {.1, .2, .4, .8, 1.6, 3.2, 5., 5.}) {
    const absl::Time before = clock.Now();
    ASSERT_OK(patience.Failed(kStale));
    EXPECT_EQ(clock.Now() - before, absl::Seconds(seconds));
  }
}

TEST(DiskPatienceTest, ItsLimitAsksForARestartAndNamesTheError) {
  QuickClock clock;
  DiskPatience patience({.limit = absl::Seconds(1)}, clock);
  const absl::Time begin = clock.Now();
  absl::Status status;
  int attempts = 0;
  for (; status.ok(); ++attempts) status = patience.Failed(kStale);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable,
                               AllOf(HasSubstr("/c: Stale"),
                                     HasSubstr("for 1s, giving up"))));
  EXPECT_EQ(attempts, 5);  // at 0, .1, .3, .7 and 1 s
  EXPECT_EQ(clock.Now() - begin, absl::Seconds(1));
}

// The newest error sets the limit, whatever the errors were before.
TEST(DiskPatienceTest, AFullDiskHasItsOwnLimitAndIsBadConfiguration) {
  QuickClock clock;
  DiskPatience patience(
      {.limit = absl::Seconds(1), .full_limit = absl::Seconds(8)}, clock);
  const absl::Time begin = clock.Now();
  const absl::Status full =
      absl::ResourceExhaustedError("can't write /c/CHIEF: No space left");
  absl::Status status = patience.Failed(kStale);
  while (status.ok()) status = patience.Failed(full);
  EXPECT_EQ(clock.Now() - begin, absl::Seconds(8));
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                               AllOf(HasSubstr("/c/CHIEF: No space"),
                                     HasSubstr("for 8s, giving up: make"))));
  EXPECT_THAT(patience.Failed(kStale),
              StatusIs(absl::StatusCode::kUnavailable));
}

TEST(DiskPatienceTest, DamageAndConfigurationAreNotTriedAgain) {
  QuickClock clock;
  DiskPatience patience({}, clock);
  for (const absl::Status& error :
       {absl::DataLossError("damaged"), absl::InvalidArgumentError("a file"),
        absl::PermissionDeniedError("not mine")}) {
    EXPECT_EQ(patience.Failed(error), error);
  }
  EXPECT_OK(patience.Failed(absl::ResourceExhaustedError("disk full")));
}

TEST(DiskPatienceTest, TellsTheTroubleAndEndsWhenItIsCancelled) {
  QuickClock clock;
  std::string trouble;
  bool cancelled = false;
  DiskPatience patience(
      {.cancelled = [&] { return cancelled; },
       .on_trouble =
           [&](absl::string_view text) { trouble = std::string(text); }},
      clock);
  ASSERT_OK(patience.Failed(kStale));
  EXPECT_EQ(trouble, kStale.message());
  cancelled = true;
  EXPECT_THAT(patience.Failed(kStale),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("/c: Stale")));
}

}  // namespace
}  // namespace parasol
