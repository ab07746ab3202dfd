#include "tool/checkpoint/array_statistics.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::DoubleEq;
using ::testing::DoubleNear;
using ::testing::IsNan;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(ArrayStatisticsTest, PiecesCountTogether) {
  ArrayStatistics statistics;
  statistics.Add({2, 4, 4, 4});
  statistics.Add({5, 5, 7, 9});
  EXPECT_EQ(statistics.elements(), 8);
  EXPECT_THAT(statistics.min(), DoubleEq(2));
  EXPECT_THAT(statistics.max(), DoubleEq(9));
  EXPECT_THAT(statistics.mean(), DoubleEq(5));
  EXPECT_THAT(statistics.deviation(), DoubleNear(2, 1e-12));
}

TEST(ArrayStatisticsTest, DeviationIsExactFarFromZero) {
  ArrayStatistics statistics;
  statistics.Add(std::vector<float>(1000, 16777215.0f));
  statistics.Add(std::vector<float>(1000, 16777213.0f));
  EXPECT_THAT(statistics.deviation(), DoubleNear(1, 1e-6));
}

TEST(ArrayStatisticsTest, WhatIsNotFiniteIsCountedApart) {
  ArrayStatistics statistics;
  statistics.Add({kNan, -1, kInfinity, 0, -kInfinity, -0.0f});
  EXPECT_EQ(statistics.elements(), 6);
  EXPECT_EQ(statistics.nans(), 1);
  EXPECT_EQ(statistics.infinities(), 2);
  EXPECT_EQ(statistics.zeros(), 2);
  EXPECT_THAT(statistics.min(), DoubleEq(-1));
  EXPECT_THAT(statistics.max(), DoubleEq(0));
}

TEST(ArrayStatisticsTest, NothingHasNoStatistics) {
  const ArrayStatistics statistics;
  EXPECT_EQ(statistics.elements(), 0);
  EXPECT_THAT(statistics.min(), IsNan());
  EXPECT_THAT(statistics.mean(), IsNan());
  EXPECT_THAT(statistics.deviation(), IsNan());
}

}  // namespace
}  // namespace parasol
