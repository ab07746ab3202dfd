#include "cluster/progress/step_rate.h"

#include <optional>

#include "gtest/gtest.h"

namespace parasol {
namespace {

const absl::Time kBegin = absl::UnixEpoch();

TEST(StepRateTest, TimeLeftFollowsTheLastTenSeconds) {
  StepRate rate;
  EXPECT_EQ(rate.TimeTo(100), std::nullopt);
  rate.Observe(0, kBegin);
  EXPECT_EQ(rate.TimeTo(100), std::nullopt);
  rate.Observe(10, kBegin + absl::Seconds(10));
  EXPECT_EQ(rate.TimeTo(100), absl::Seconds(90));
  rate.Observe(30, kBegin + absl::Seconds(20));
  EXPECT_EQ(rate.TimeTo(100), absl::Seconds(35));
}

TEST(StepRateTest, AStandstillOfFiveSecondsHasNoTimeLeft) {
  StepRate rate;
  rate.Observe(0, kBegin);
  rate.Observe(10, kBegin + absl::Seconds(1));
  rate.Observe(10, kBegin + absl::Seconds(5));
  EXPECT_EQ(rate.TimeTo(100), absl::Seconds(45));
  rate.Observe(10, kBegin + absl::Seconds(6));
  EXPECT_EQ(rate.TimeTo(100), std::nullopt);
  rate.Observe(20, kBegin + absl::Seconds(7));
  EXPECT_EQ(rate.TimeTo(100), absl::Seconds(28));
}

TEST(StepRateTest, WithoutAnEndThereIsNoTimeLeft) {
  StepRate rate;
  rate.Observe(0, kBegin);
  rate.Observe(10, kBegin + absl::Seconds(1));
  EXPECT_EQ(rate.TimeTo(0), std::nullopt);
}

TEST(StepRateTest, RestoredCheckpointStartsAnew) {
  StepRate rate;
  rate.Observe(50, kBegin);
  rate.Observe(60, kBegin + absl::Seconds(1));
  rate.Observe(40, kBegin + absl::Seconds(2));
  EXPECT_EQ(rate.TimeTo(100), std::nullopt);
}

}  // namespace
}  // namespace parasol
