#include "worker/step/step_grant.h"

#include "gtest/gtest.h"

namespace parasol {
namespace {

TEST(StepGrantTest, NoStepStartsBeforeTheFirstGrant) {
  StepGrant lease;
  EXPECT_FALSE(lease.TryStart());
  EXPECT_EQ(lease.held(), 0);
}

TEST(StepGrantTest, AsManyStepsStartAsWereGranted) {
  StepGrant lease;
  lease.Grant(2);
  EXPECT_TRUE(lease.TryStart());
  EXPECT_TRUE(lease.TryStart());
  EXPECT_FALSE(lease.TryStart());
  EXPECT_EQ(lease.started(), 2);
  EXPECT_EQ(lease.completed(), 0);
}

TEST(StepGrantTest, GrantsAreTotalsSoARepeatedOneAddsNothing) {
  StepGrant lease;
  lease.Grant(3);
  EXPECT_TRUE(lease.TryStart());
  lease.Grant(3);
  EXPECT_EQ(lease.held(), 2);
}

TEST(StepGrantTest, ASmallerGrantOfARestartedChiefHoldsNothing) {
  StepGrant lease;
  lease.Grant(5);
  EXPECT_TRUE(lease.TryStart());
  EXPECT_TRUE(lease.TryStart());
  lease.Grant(1);
  EXPECT_EQ(lease.held(), 0);
  EXPECT_FALSE(lease.TryStart());
}

TEST(StepGrantTest, WantsTwiceTheStepsOfOneHorizonWithinBounds) {
  struct Case {
    const char* name;
    int64_t completed;
    absl::Duration elapsed;
    int64_t want;
  };
  const Case cases[] = {
      {"nothing known yet", 0, absl::ZeroDuration(), 1},
      {"slow model", 1, absl::Seconds(10), 1},
      {"100 steps/s, asked each 100 ms", 100, absl::Seconds(1), 20},
      {"absurdly fast", 1000000, absl::Seconds(1), StepGrant::kMaxHeld},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(
        StepGrant::WantedSteps(c.completed, c.elapsed, absl::Milliseconds(100)),
        c.want);
  }
}

}  // namespace
}  // namespace parasol
