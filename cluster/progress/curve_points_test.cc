#include "cluster/progress/curve_points.h"

#include <cstdint>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

TEST(CurvePointsTest, PartsEndAtEpochsAndAtMultiples) {
  for (const auto& [epoch, every] : {std::pair<int64_t, int64_t>{10, 0},
                                     {10, 4},
                                     {10, 5},
                                     {10, 10},
                                     {10, 25},
                                     {7, 3},
                                     {1, 1},
                                     {1, 5},
                                     {6, 4},
                                     {12, 1}}) {
    const CurvePoints points(epoch, every);
    int64_t part = 0;
    int64_t next = points.NextAfter(0);
    for (int64_t step = 0; step < 200; ++step) {
      SCOPED_TRACE(testing::Message() << epoch << " " << every << " " << step);
      if (step > 0 && points.IsPoint(step)) {
        ++part;
        EXPECT_EQ(step, next);
        next = points.NextAfter(step);
      }
      EXPECT_EQ(points.PartOf(step), part);
      EXPECT_EQ(points.IsPoint(step),
                step % epoch == 0 || (every > 0 && step % every == 0));
    }
  }
}

TEST(CurvePointsTest, LargeNumbersDoNotOverflow) {
  const int64_t large = (int64_t{1} << 53) - 1;
  const CurvePoints points(large, large - 2);
  EXPECT_EQ(points.PartOf(large), 2);
  EXPECT_EQ(points.NextAfter(large - 2), large);
  EXPECT_EQ(CurvePoints(large, 1).PartOf(large - 1), large - 1);
}

TEST(CurvePointsTest, WithoutEpochsOnlyMultiplesAreKnown) {
  EXPECT_FALSE(CurvePoints().are_known());
  EXPECT_FALSE(CurvePoints().IsPoint(10));
  EXPECT_TRUE(CurvePoints(0, 5).IsPoint(10));
  EXPECT_FALSE(CurvePoints(0, 5).EndsEpoch(10));
}

}  // namespace
}  // namespace parasol
