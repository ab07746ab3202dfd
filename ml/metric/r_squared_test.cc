#include "ml/metric/r_squared.h"

#include <cmath>

#include "gtest/gtest.h"

namespace parasol {
namespace {

// scikit-learn's example of r2_score: 0.948…
TEST(RSquaredTest, IsThatOfScikitLearn) {
  RSquared r;
  r.Add(2.5, 3, 1);
  r.Add(0, -.5, 1);
  r.Add(2, 2, 1);
  r.Add(8, 7, 1);
  EXPECT_NEAR(r.Value(), .9486081370449679, 1e-12);
}

TEST(RSquaredTest, ExamplesCountByTheirWeights) {
  RSquared weighted;
  weighted.Add(1, 2, 3);
  weighted.Add(5, 4, 1);
  weighted.Add(9, 9, 0);
  RSquared repeated;
  for (int i = 0; i < 3; ++i) repeated.Add(1, 2, 1);
  repeated.Add(5, 4, 1);
  EXPECT_DOUBLE_EQ(weighted.Value(), repeated.Value());
}

TEST(RSquaredTest, LabelsFarFromZeroLoseNoDigits) {
  RSquared r;
  for (const double label : {1.0, 2.0, 3.0, 4.0}) {
    r.Add(1e9 + label + .5, 1e9 + label, 1);
  }
  EXPECT_DOUBLE_EQ(r.Value(), .8);
}

TEST(RSquaredTest, MergedPartsAreTheWhole) {
  RSquared whole;
  RSquared parts[2];
  for (int i = 0; i < 100; ++i) {
    const double label = std::sin(i);
    whole.Add(label + .1 * std::cos(7 * i), label, 1 + i % 3);
    parts[i % 2].Add(label + .1 * std::cos(7 * i), label, 1 + i % 3);
  }
  parts[0].Merge(parts[1]);
  EXPECT_NEAR(parts[0].Value(), whole.Value(), 1e-13);
}

TEST(RSquaredTest, WithoutADeviationItIsUndefined) {
  RSquared r;
  EXPECT_TRUE(std::isnan(r.Value()));
  r.Add(1, 2, 1);
  r.Add(3, 2, 1);
  EXPECT_TRUE(std::isnan(r.Value()));
  r.Add(std::nan(""), 3, 1);
  EXPECT_TRUE(std::isnan(r.Value()));
}

}  // namespace
}  // namespace parasol
