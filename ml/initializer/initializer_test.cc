#include "ml/initializer/initializer.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

job::Initializer Spec(const std::string& textproto) {
  job::Initializer spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(textproto, &spec));
  return spec;
}

std::vector<float> Draw(const std::string& textproto,
                        const std::vector<int64_t>& shape, uint64_t seed = 1,
                        const std::string& name = "dense/kernel") {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  std::vector<float> values(count);
  EXPECT_OK(Initialize(Spec(textproto), seed, name, shape, 0,
                       absl::MakeSpan(values)));
  return values;
}

double Mean(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += value;
  return sum / values.size();
}

double Stddev(const std::vector<float>& values) {
  const double mean = Mean(values);
  double sum = 0;
  for (const float value : values) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / values.size());
}

float LargestMagnitude(const std::vector<float>& values) {
  float largest = 0;
  for (const float value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

const std::string kRandom[] = {"glorot_uniform {}", "he_normal {}",
                               "random_normal {}", "random_uniform {}"};

TEST(InitializerTest, ZerosAndConstantsAreThemselves) {
  EXPECT_THAT(Draw("zeros {}", {3, 2}), Each(0.f));
  EXPECT_THAT(Draw("constant { value: .25 }", {5}), Each(.25f));
  EXPECT_THAT(Draw("constant {}", {5}), Each(0.f));
}

TEST(InitializerTest, ASplitVariableHasTheValuesOfTheWhole) {
  const std::vector<int64_t> shape = {101, 7};
  for (const std::string& spec : kRandom) {
    SCOPED_TRACE(spec);
    const std::vector<float> whole = Draw(spec, shape);
    for (const size_t piece : {1, 5, 64, 700}) {
      std::vector<float> pieces(whole.size());
      for (size_t first = 0; first < pieces.size(); first += piece) {
        EXPECT_OK(Initialize(Spec(spec), 1, "dense/kernel", shape, first,
                             absl::MakeSpan(pieces).subspan(first, piece)));
      }
      EXPECT_EQ(pieces, whole);
    }
  }
}

TEST(InitializerTest, SeedAndNameEachGiveOtherValues) {
  for (const std::string& spec : kRandom) {
    SCOPED_TRACE(spec);
    const std::vector<float> values = Draw(spec, {100});
    EXPECT_EQ(Draw(spec, {100}), values);
    EXPECT_NE(Draw(spec, {100}, 2), values);
    EXPECT_NE(Draw(spec, {100}, uint64_t{1} << 40), values);
    EXPECT_NE(Draw(spec, {100}, 1, "dense_1/kernel"), values);
  }
}

// 10^6 draws: a mean is off by σ/1000, a deviation by σ/1414; 5 of them are
// allowed, the seed being fixed.
constexpr double kTolerance = 5e-3;

TEST(InitializerTest, GlorotUniformFillsItsLimits) {
  const std::vector<float> values = Draw("glorot_uniform {}", {2000, 500});
  const double limit = std::sqrt(6. / 2500);
  EXPECT_LE(LargestMagnitude(values), static_cast<float>(limit));
  EXPECT_GT(LargestMagnitude(values), limit * .9999);
  EXPECT_NEAR(Mean(values), 0, kTolerance * limit);
  EXPECT_NEAR(Stddev(values), limit / std::sqrt(3), kTolerance * limit);
}

TEST(InitializerTest, HeNormalHasItsDeviationAfterTruncation) {
  const std::vector<float> values = Draw("he_normal {}", {2000, 500});
  const double stddev = std::sqrt(2. / 2000);
  const double bound = 2 * stddev / .87962566103423978;
  EXPECT_LE(LargestMagnitude(values), static_cast<float>(bound));
  EXPECT_GT(LargestMagnitude(values), bound * .999);
  EXPECT_NEAR(Mean(values), 0, kTolerance * stddev);
  EXPECT_NEAR(Stddev(values), stddev, kTolerance * stddev);
}

TEST(InitializerTest, RandomNormalHasItsMeanAndDeviation) {
  const std::vector<float> values =
      Draw("random_normal { mean: 3 stddev: 2 }", {1000000});
  EXPECT_NEAR(Mean(values), 3, 2 * kTolerance);
  EXPECT_NEAR(Stddev(values), 2, 2 * kTolerance);
  const double beyond_two =
      std::count_if(values.begin(), values.end(),
                    [](float value) { return std::abs(value - 3) > 4; });
  EXPECT_NEAR(beyond_two / values.size(), .0455, .002);
}

TEST(InitializerTest, DefaultsAreThoseOfKeras) {
  EXPECT_NEAR(Stddev(Draw("random_normal {}", {1000000})), .05,
              .05 * kTolerance);
  EXPECT_NEAR(LargestMagnitude(Draw("random_uniform {}", {1000000})), .05,
              1e-5);
}

TEST(InitializerTest, RandomUniformStaysInItsRange) {
  const std::vector<float> values =
      Draw("random_uniform { minval: 2 maxval: 3 }", {100000});
  EXPECT_NEAR(*std::min_element(values.begin(), values.end()), 2, 1e-3);
  EXPECT_NEAR(*std::max_element(values.begin(), values.end()), 3, 1e-3);
  EXPECT_GE(*std::min_element(values.begin(), values.end()), 2);
  EXPECT_LE(*std::max_element(values.begin(), values.end()), 3);
}

TEST(InitializerTest, NeighboursAreNotCorrelated) {
  const std::vector<float> values =
      Draw("random_normal { stddev: 1 }", {1000000});
  double sum = 0;
  for (size_t i = 1; i < values.size(); ++i) sum += values[i] * values[i - 1];
  EXPECT_NEAR(sum / values.size(), 0, kTolerance);
}

TEST(InitializerTest, ElementsBeyondFourBillionDifferFromTheFirst) {
  const std::vector<int64_t> shape = {int64_t{1} << 33};
  std::vector<float> low(10), high(10);
  EXPECT_OK(Initialize(Spec("random_normal {}"), 1, "table", shape, 0,
                       absl::MakeSpan(low)));
  EXPECT_OK(Initialize(Spec("random_normal {}"), 1, "table", shape,
                       int64_t{1} << 32, absl::MakeSpan(high)));
  EXPECT_NE(low, high);
}

TEST(InitializerTest, OrthogonalRowsOrColumnsHaveNoPartInEachOther) {
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{16, 64}, {64, 16}, {20, 20}, {2, 5, 7}}) {
    const std::vector<float> values = Draw("orthogonal {}", shape);
    const int64_t columns = shape.back();
    const int64_t rows = static_cast<int64_t>(values.size()) / columns;
    const bool by_row = rows < columns;
    const int64_t count = by_row ? rows : columns;
    const auto at = [&](int64_t vector, int64_t i) {
      return values[by_row ? vector * columns + i : i * columns + vector];
    };
    for (int64_t a = 0; a < count; ++a) {
      for (int64_t b = 0; b < count; ++b) {
        double dot = 0;
        for (int64_t i = 0; i < std::max(rows, columns); ++i) {
          dot += double{at(a, i)} * at(b, i);
        }
        ASSERT_NEAR(dot, a == b, 1e-6) << a << ", " << b;
      }
    }
  }
}

TEST(InitializerTest, APartOfAnOrthogonalMatrixIsThePartOfTheWhole) {
  const std::vector<float> whole = Draw("orthogonal {}", {6, 9});
  std::vector<float> part(10);
  EXPECT_OK(Initialize(Spec("orthogonal {}"), 1, "dense/kernel", {6, 9}, 20,
                       absl::MakeSpan(part)));
  const std::vector<float> want(whole.begin() + 20, whole.begin() + 30);
  EXPECT_EQ(part, want);
}

TEST(InitializerTest, UnitForgetIsOneForTheSecondGate) {
  EXPECT_EQ(Draw("unit_forget {}", {8}),
            (std::vector<float>{0, 0, 1, 1, 0, 0, 0, 0}));
}

TEST(InitializerTest, WhatIsWrongIsNamed) {
  struct Case {
    std::string spec;
    std::vector<int64_t> shape;
    int64_t first;
    std::string want;
  };
  const Case cases[] = {
      {"", {4}, 0, "initializer of w: no initializer is chosen"},
      {"random_normal { stddev: -1 }",
       {4},
       0,
       "random_normal.stddev: -1 is negative"},
      {"random_normal { mean: inf }",
       {4},
       0,
       "random_normal.mean: inf is not finite"},
      {"constant { value: nan }", {4}, 0, "constant.value: nan is not finite"},
      {"random_uniform { minval: 1 }", {4}, 0, "minval 1 and maxval 0.05"},
      {"zeros {}", {4}, 1, "elements [1, 1 + 4) are not in shape [4]"},
      {"zeros {}", {4}, -1, "elements [-1"},
      {"zeros {}", {-4}, 0, "shape [-4]"},
      {"orthogonal {}", {4}, 0, "orthogonal: shape [4] is no matrix"},
      {"orthogonal {}", {1 << 13, 1 << 13}, 0, "has more than 16777216"},
      {"unit_forget {}", {6}, 0, "unit_forget: shape [6]"},
      {"zeros {}", {int64_t{1} << 40, int64_t{1} << 40}, 0, "is not a"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.want);
    std::vector<float> out(4);
    EXPECT_THAT(
        Initialize(Spec(c.spec), 1, "w", c.shape, c.first, absl::MakeSpan(out)),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.want)));
  }
}

}  // namespace
}  // namespace parasol
