#include "ml/kernel/exp.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace parasol {
namespace {

TEST(ExpTest, IsWithinTwoUnitsOfTheLastPlace) {
  double worst = 0;
  for (float x = -87; x <= 88; x += 0.001f) {
    const double want = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::fabs(Exp(x) - want) / want);
  }
  EXPECT_LE(worst, std::ldexp(2.0, -23));
}

TEST(ExpTest, ZeroGivesOneExactly) {
  EXPECT_EQ(Exp(0.0f), 1);
  EXPECT_EQ(Exp(-0.0f), 1);
}

TEST(ExpTest, WhatIsFarBelowZeroGivesZero) {
  for (const float x : {-87.1f, -1000.0f, -std::numeric_limits<float>::max(),
                        -std::numeric_limits<float>::infinity()}) {
    EXPECT_EQ(Exp(x), 0) << x;
  }
}

TEST(ExpTest, NanGivesNan) {
  EXPECT_TRUE(std::isnan(Exp(std::numeric_limits<float>::quiet_NaN())));
}

}  // namespace
}  // namespace parasol
