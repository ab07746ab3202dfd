#include "cluster/progress/recent_totals.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;

const absl::Time kStart = absl::FromUnixSeconds(1000);

TEST(RecentTotalsTest, TheFirstTotalsHaveNoRate) {
  RecentTotals totals;
  EXPECT_THAT(totals.Rates({5, 7}, kStart), ElementsAre(0, 0));
}

TEST(RecentTotalsTest, GrowthIsOfTheLastSecondsAlone) {
  RecentTotals totals;
  double total = 0;
  for (int second = 0; second < 20; ++second) {
    totals.Rates({total}, kStart + absl::Seconds(second));
    total += 100;
  }
  // It grows no more from here on: after half of the window by half.
  std::vector<double> rates;
  for (int second = 20; second < 24; ++second) {
    rates = totals.Rates({total}, kStart + absl::Seconds(second));
  }
  EXPECT_THAT(rates, ElementsAre(DoubleEq(62.5)));
  for (int second = 24; second < 30; ++second) {
    rates = totals.Rates({total}, kStart + absl::Seconds(second));
  }
  EXPECT_THAT(rates, ElementsAre(0));
}

TEST(RecentTotalsTest, TotalsThatBeginAgainAndAClockThatStandsGiveNoRate) {
  RecentTotals totals;
  totals.Rates({50}, kStart);
  EXPECT_THAT(totals.Rates({60}, kStart), ElementsAre(0));
  EXPECT_THAT(totals.Rates({10}, kStart + absl::Seconds(1)), ElementsAre(0));
}

}  // namespace
}  // namespace parasol
