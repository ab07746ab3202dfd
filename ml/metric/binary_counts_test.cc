#include "ml/metric/binary_counts.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace parasol {
namespace {

TEST(BinaryCountsTest, AreQuotientsOfWeights) {
  BinaryCounts counts(.5);
  counts.Add({2}, {1}, 3);    // right, positive
  counts.Add({1}, {0}, 1);    // wrong
  counts.Add({-1}, {1}, 2);   // missed
  counts.Add({-2}, {0}, 10);  // right, negative
  EXPECT_DOUBLE_EQ(counts.Precision(), 3.0 / 4);
  EXPECT_DOUBLE_EQ(counts.Recall(), 3.0 / 5);
  EXPECT_DOUBLE_EQ(counts.F1(), 2 * .75 * .6 / (.75 + .6));
}

TEST(BinaryCountsTest, EachOutputCounts) {
  BinaryCounts counts(.5);
  counts.Add({1, -1, 1}, {1, 1, 0}, 1);
  EXPECT_DOUBLE_EQ(counts.Precision(), .5);
  EXPECT_DOUBLE_EQ(counts.Recall(), .5);
}

// sigmoid(log 3) = .75: an output must be above it.
TEST(BinaryCountsTest, TheThresholdIsAProbability) {
  BinaryCounts counts(.75);
  counts.Add({std::log(3.0f) + .01f}, {1}, 1);
  counts.Add({std::log(3.0f) - .01f}, {1}, 1);
  EXPECT_DOUBLE_EQ(counts.Recall(), .5);
  BinaryCounts half(.5);
  half.Add({0}, {1}, 1);
  EXPECT_EQ(half.Recall(), 0);
}

TEST(BinaryCountsTest, WithoutPositivesTheyAreZeroAndWithoutExamplesNan) {
  BinaryCounts counts(.5);
  EXPECT_TRUE(std::isnan(counts.Precision()));
  EXPECT_TRUE(std::isnan(counts.F1()));
  counts.Add({-1}, {0}, 1);
  EXPECT_EQ(counts.Precision(), 0);
  EXPECT_EQ(counts.Recall(), 0);
  EXPECT_EQ(counts.F1(), 0);
  counts.Add({std::numeric_limits<float>::quiet_NaN()}, {1}, 1);
  EXPECT_TRUE(std::isnan(counts.Recall()));
}

TEST(BinaryCountsTest, MergedPartsAreTheWhole) {
  BinaryCounts counts(.5);
  counts.Add({1}, {1}, 1);
  BinaryCounts other(.5);
  other.Add({-1}, {1}, 2);
  other.Add({1}, {0}, 4);
  counts.Merge(other);
  EXPECT_DOUBLE_EQ(counts.Precision(), 1.0 / 5);
  EXPECT_DOUBLE_EQ(counts.Recall(), 1.0 / 3);
}

}  // namespace
}  // namespace parasol
