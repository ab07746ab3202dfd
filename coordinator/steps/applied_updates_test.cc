#include "coordinator/steps/applied_updates.h"

#include "gtest/gtest.h"

namespace parasol {
namespace {

constexpr int64_t kFew = AppliedUpdates::kAlwaysAhead;
constexpr int64_t kMany = AppliedUpdates::kMostAhead;

TEST(AppliedUpdatesTest, WithoutPsNothingIsSaidAgainstAnybody) {
  AppliedUpdates applied;
  EXPECT_TRUE(applied.Explain(INT64_MAX));
  EXPECT_EQ(applied.MostSteps(), INT64_MAX);
  applied.Hear(0, 7, 0, 0);
  EXPECT_FALSE(applied.Explain(kFew + 1));
  applied.Forget(0);
  EXPECT_TRUE(applied.Explain(INT64_MAX));
}

TEST(AppliedUpdatesTest, StepsWithoutPushesAreFew) {
  AppliedUpdates applied;
  for (int heartbeat = 0; heartbeat < 3; ++heartbeat) {
    applied.Hear(0, 7, 0, 0);
    EXPECT_TRUE(applied.Explain(kFew));
    EXPECT_FALSE(applied.Explain(kFew + 1));
    EXPECT_EQ(applied.MostSteps(), kFew);
  }
}

TEST(AppliedUpdatesTest, WorkersMayBeAheadOfTheLastHeartbeat) {
  AppliedUpdates applied;
  applied.Hear(0, 7, 0, 0);
  applied.Hear(0, 7, 10000, 9000);
  EXPECT_TRUE(applied.Explain(20000));
  EXPECT_FALSE(applied.Explain(20001));
  applied.Hear(0, 7, 10000000, 9000000);
  EXPECT_TRUE(applied.Explain(10000000 + kMany));
  EXPECT_FALSE(applied.Explain(10000001 + kMany));
  EXPECT_EQ(applied.MostSteps(), 10000000 + kMany);
}

TEST(AppliedUpdatesTest, ThePsThatHasAppliedMostCounts) {
  AppliedUpdates applied;
  applied.Hear(0, 7, 0, 0);
  applied.Hear(1, 8, 0, 0);
  applied.Hear(1, 8, 50000, 0);
  EXPECT_TRUE(applied.Explain(100000));
  EXPECT_EQ(applied.MostSteps(), 100000);
}

// Steps whose pushes nobody has counted are not held against the workers.
TEST(AppliedUpdatesTest, AnotherProcessOrLoadBeginsAnew) {
  AppliedUpdates applied;
  applied.Hear(0, 7, 0, 0);
  applied.Hear(0, 7, 1000, 900000);
  EXPECT_FALSE(applied.Explain(900000));
  applied.Hear(0, 8, 1000, 900000);
  EXPECT_TRUE(applied.Explain(900000));
  applied.Hear(0, 8, 0, 950000);
  EXPECT_TRUE(applied.Explain(950000 + kFew));
}

TEST(AppliedUpdatesTest, AbsurdNumbersOverflowNothing) {
  AppliedUpdates applied;
  applied.Hear(0, 7, INT64_MIN, 0);
  applied.Hear(0, 7, INT64_MAX, 0);
  EXPECT_TRUE(applied.Explain(int64_t{1} << 53));
  EXPECT_GT(applied.MostSteps(), 0);
  applied.Hear(0, 7, INT64_MIN, INT64_MAX / 2);
  EXPECT_TRUE(applied.Explain(INT64_MAX / 2));
}

}  // namespace
}  // namespace parasol
