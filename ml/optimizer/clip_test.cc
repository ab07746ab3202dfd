#include "ml/optimizer/clip.h"

#include <cmath>
#include <limits>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;
using ::testing::IsNan;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> ByValue(double limit, std::vector<float> gradient) {
  ClipByValue(limit, absl::MakeSpan(gradient));
  return gradient;
}

std::vector<float> ByNorm(double limit, std::vector<float> gradient) {
  ClipByNorm(limit, absl::MakeSpan(gradient));
  return gradient;
}

std::vector<std::vector<float>> ByGlobalNorm(
    double limit, std::vector<std::vector<float>> gradients) {
  std::vector<absl::Span<float>> spans;
  for (std::vector<float>& gradient : gradients) {
    spans.push_back(absl::MakeSpan(gradient));
  }
  ClipByGlobalNorm(limit, spans);
  return gradients;
}

TEST(ClipByValueTest, LimitsBothSidesAndKeepsNan) {
  EXPECT_THAT(ByValue(1, {-3, -1, .5, 2, kInf, -kInf, kNan}),
              ElementsAre(-1, -1, .5, 1, 1, -1, IsNan()));
}

TEST(ClipByNormTest, ScalesALargerNormDown) {
  EXPECT_THAT(ByNorm(1, {3, 4}), ElementsAre(FloatEq(.6f), FloatEq(.8f)));
}

TEST(ClipByNormTest, ASmallerNormAndZerosStay) {
  EXPECT_THAT(ByNorm(5, {3, 4}), ElementsAre(3, 4));
  EXPECT_THAT(ByNorm(1, {0, 0}), ElementsAre(0, 0));
  EXPECT_THAT(ByNorm(1, {}), ElementsAre());
}

TEST(ClipByNormTest, WhatIsNotFiniteGoesAsInTensorFlow) {
  EXPECT_THAT(ByNorm(1, {kInf, 1}), ElementsAre(IsNan(), 0));
  EXPECT_THAT(ByNorm(1, {kNan, 1}), ElementsAre(IsNan(), IsNan()));
}

TEST(ClipByNormTest, AFiniteGradientWhoseSquaresOverflowIsClipped) {
  EXPECT_THAT(ByNorm(1, {3e30f, 4e30f}),
              ElementsAre(FloatEq(.6f), FloatEq(.8f)));
}

// numerics of TensorFlow 2.13: rows 0, 2, 0 with (3, 4), (6, 8), (1, 0).
TEST(ClipByNormTest, ARowThatOccursTwiceCountsTwice) {
  const std::vector<float> clipped = ByNorm(1, {3, 4, 6, 8, 1, 0});
  EXPECT_FLOAT_EQ(clipped[0] + clipped[4], .35634834f);
}

TEST(ClipByNormTest, TheOrderOfAdditionsCoversEveryElementOnce) {
  for (const size_t count : {1, 15, 16, 17, 31, 100, 1000}) {
    const std::vector<float> clipped = ByNorm(1, std::vector<float>(count, 2));
    EXPECT_THAT(clipped, Each(FloatEq(1 / std::sqrt(count)))) << count;
  }
}

TEST(ClipByGlobalNormTest, ScalesAllByOneFactor) {
  EXPECT_THAT(ByGlobalNorm(6.5, {{3, 4}, {0, 12}}),
              ElementsAre(ElementsAre(1.5, 2), ElementsAre(0, 6)));
  EXPECT_THAT(ByGlobalNorm(26, {{3, 4}, {0, 12}}),
              ElementsAre(ElementsAre(3, 4), ElementsAre(0, 12)));
  EXPECT_THAT(ByGlobalNorm(1, {{0}, {}}),
              ElementsAre(ElementsAre(0), ElementsAre()));
}

TEST(ClipByGlobalNormTest, ANormThatIsNotFiniteMakesEverythingNan) {
  for (const float bad : {kInf, -kInf, kNan}) {
    EXPECT_THAT(ByGlobalNorm(1, {{bad, 1}, {1}}),
                ElementsAre(Each(IsNan()), Each(IsNan())));
  }
}

TEST(CheckClippingTest, LimitsAreAboveZero) {
  EXPECT_OK(CheckClipping(job::Optimizer()));
  job::Optimizer spec;
  spec.set_clipvalue(.5);
  spec.set_clipnorm(1);
  spec.set_global_clipnorm(2);
  EXPECT_OK(CheckClipping(spec));
  spec.set_clipnorm(0);
  EXPECT_THAT(CheckClipping(spec),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("clipnorm is 0; it must be")));
}

}  // namespace
}  // namespace parasol
