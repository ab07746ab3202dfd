#include "tool/flag/flag_checks.h"

#include "absl/time/time.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

TEST(FlagChecksTest, NumbersHaveALeastValue) {
  EXPECT_OK(CheckAtLeast("max_to_keep", 0, 0));
  EXPECT_OK(CheckAtLeast("table_memory", int64_t{1} << 40, 1));
  EXPECT_THAT(CheckAtLeast("full_every", 0, 1),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--full_every=0 is not at least 1")));
}

TEST(FlagChecksTest, DurationsAreAboveZeroAndAtMostADay) {
  EXPECT_OK(CheckDuration("timeout", absl::Nanoseconds(1)));
  EXPECT_OK(CheckDuration("timeout", absl::Hours(24)));
  for (const absl::Duration wrong :
       {absl::ZeroDuration(), -absl::Seconds(1),
        absl::Hours(24) + absl::Nanoseconds(1), absl::InfiniteDuration()}) {
    EXPECT_THAT(CheckDuration("timeout", wrong),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("is not above 0 and at most 24h")));
  }
  EXPECT_THAT(CheckDuration("timeout", -absl::Seconds(1)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--timeout=-1s ")));
}

}  // namespace
}  // namespace parasol
