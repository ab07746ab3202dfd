#include "ml/kernel/vector_math.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace parasol::vector_math {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The largest of error(x) over [low, high], at a million places.
template <typename Error>
double Largest(float low, float high, const Error& error) {
  constexpr int kPlaces = 1000000;
  double largest = 0;
  for (int i = 0; i <= kPlaces; ++i) {
    const float x = low + (high - low) * (static_cast<float>(i) / kPlaces);
    largest = std::max(largest, std::abs(error(x)));
  }
  return largest;
}

double PreciseNormalCdf(double x) { return std::erfc(-x / std::sqrt(2)) / 2; }

TEST(VectorMathTest, ErrorsAreBelowWhatTheHeaderSays) {
  EXPECT_LT(Largest(-87, 88,
                    [](float x) { return Exp(x) / std::exp(double{x}) - 1; }),
            1e-7);
  EXPECT_LT(Largest(-90, 90,
                    [](float x) {
                      return Sigmoid(x) - 1 / (1 + std::exp(-double{x}));
                    }),
            2e-7);
  EXPECT_LT(Largest(1e-30f, 90,
                    [](float x) { return Tanh(x) / std::tanh(double{x}) - 1; }),
            3e-7);
  EXPECT_LT(Largest(1e-30f, 1,
                    [](float x) { return Tanh(x) / std::tanh(double{x}) - 1; }),
            3e-7);
  EXPECT_LT(Largest(-12, 12,
                    [](float x) { return NormalCdf(x) - PreciseNormalCdf(x); }),
            4e-7);
  EXPECT_LT(
      Largest(-12, 12,
              [](float x) { return Bell(x) - std::exp(-double{x} * x / 2); }),
      4e-7);
}

TEST(VectorMathTest, ExpIsWithinTwoUnitsOfTheLastPlace) {
  double worst = 0;
  for (float x = -87; x <= 88; x += 0.001f) {
    const double want = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::fabs(Exp(x) - want) / want);
  }
  EXPECT_LE(worst, std::ldexp(2.0, -23));
}

TEST(VectorMathTest, ExpOfZeroIsOneExactly) {
  EXPECT_EQ(Exp(0.0f), 1);
  EXPECT_EQ(Exp(-0.0f), 1);
}

TEST(VectorMathTest, ExpOfWhatIsFarBelowZeroIsZero) {
  for (const float x : {-87.1f, -1000.0f, -std::numeric_limits<float>::max(),
                        -std::numeric_limits<float>::infinity()}) {
    EXPECT_EQ(Exp(x), 0) << x;
  }
}

TEST(VectorMathTest, InfinitiesGiveTheLimits) {
  EXPECT_EQ(Exp(-kInfinity), 0);
  EXPECT_EQ(Sigmoid(-kInfinity), 0);
  EXPECT_EQ(Sigmoid(kInfinity), 1);
  EXPECT_EQ(Tanh(-kInfinity), -1);
  EXPECT_EQ(Tanh(kInfinity), 1);
  EXPECT_EQ(NormalCdf(-kInfinity), 0);
  EXPECT_EQ(NormalCdf(kInfinity), 1);
}

TEST(VectorMathTest, NanStaysNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(Exp(nan)));
  EXPECT_TRUE(std::isnan(Sigmoid(nan)));
  EXPECT_TRUE(std::isnan(Tanh(nan)));
  EXPECT_TRUE(std::isnan(NormalCdf(nan)));
}

}  // namespace
}  // namespace parasol::vector_math
