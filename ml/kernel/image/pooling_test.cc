#include "ml/kernel/image/pooling.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/device/testing/device_fixture.h"
#include "ml/kernel/testing/reference_image.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pointwise;

using Kind = PoolingShape::Kind;

constexpr auto kSame = WindowPadding::kSame;
constexpr auto kValid = WindowPadding::kValid;

// Means and sums of at most some tens of values below 1, each step rounded at
// 2^-24.
constexpr float kTolerance = 2e-6;

struct Case {
  std::string name;
  int64_t examples;
  WindowAxis height, width;
  int64_t channels;
};

const Case kCases[] = {
    {"one pixel", 1, FitWindow(1, 1, 1, kSame), FitWindow(1, 1, 1, kSame), 1},
    {"LeNet's", 3, FitWindow(28, 2, 2, kValid), FitWindow(28, 2, 2, kValid), 6},
    {"windows that overlap", 2, FitWindow(9, 3, 2, kSame),
     FitWindow(8, 3, 2, kSame), 16},
    {"stride 1", 2, FitWindow(5, 3, 1, kSame), FitWindow(7, 2, 1, kSame), 5},
    {"rows that no window reaches", 2, FitWindow(10, 2, 4, kValid),
     FitWindow(11, 3, 5, kValid), 3},
    {"all pixels", 4, FitWindow(8, 8, 8, kValid), FitWindow(8, 8, 8, kValid),
     64},
    {"a window larger than the image", 1, FitWindow(2, 5, 5, kSame),
     FitWindow(3, 7, 7, kSame), 8},
};

std::vector<double> Random(int64_t size, uint32_t seed) {
  return RandomMatrix(1, size, seed).values;
}

std::vector<float> Floats(const std::vector<double>& values) {
  return std::vector<float>(values.begin(), values.end());
}

class PoolingTest : public DeviceTest {
 protected:
  std::unique_ptr<Pooling> Make(const PoolingShape& shape) {
    absl::StatusOr<std::unique_ptr<Pooling>> pooling =
        Pooling::Create(device(), shape);
    EXPECT_OK(pooling.status());
    return *std::move(pooling);
  }

  // Returns dx of pixels 0, 1, … of one channel in a row.
  std::vector<float> MaxGradient(const std::vector<float>& x,
                                 const WindowAxis& width,
                                 const std::vector<float>& dy) {
    const PoolingShape shape = {Kind::kMax, 1, FitWindow(1, 1, 1, kValid),
                                width, 1};
    float* const y = Put(dy);
    float* const dx = Put(x);
    const auto pooling = Make(shape);
    EXPECT_OK(pooling->Forward(Put(x), y));
    EXPECT_OK(pooling->InputGradient(Put(x), y, Put(dy), dx));
    return Get(dx, x.size());
  }
};

TEST_P(PoolingTest, ForwardAndGradientAreTheReference) {
  for (const Case& c : kCases) {
    for (const Kind kind : {Kind::kMax, Kind::kAverage}) {
      SCOPED_TRACE(c.name + (kind == Kind::kMax ? ", max" : ", average"));
      const PoolingShape shape = {kind, c.examples, c.height, c.width,
                                  c.channels};
      const std::vector<double> x = Random(shape.x_size(), 1);
      const std::vector<double> dy = Random(shape.y_size(), 2);
      float* const y = Put(Floats(dy));
      float* const dx = Put(Floats(x));
      const auto pooling = Make(shape);
      EXPECT_OK(pooling->Forward(Put(Floats(x)), y));
      EXPECT_THAT(Get(y, shape.y_size()),
                  Pointwise(FloatNear(kTolerance),
                            Floats(reference::Pooling(shape, x))));
      EXPECT_OK(pooling->InputGradient(Put(Floats(x)), y, Put(Floats(dy)), dx));
      EXPECT_THAT(
          Get(dx, shape.x_size()),
          Pointwise(FloatNear(kTolerance),
                    Floats(reference::PoolingInputGradient(shape, x, dy))));
    }
  }
}

TEST_P(PoolingTest, TheFirstOfSeveralLargestGetsTheGradient) {
  EXPECT_THAT(MaxGradient({0, 0, 0, 0}, FitWindow(4, 2, 2, kValid), {3, 5}),
              ElementsAre(3, 0, 5, 0));
  EXPECT_THAT(MaxGradient({1, 2, 2, 1}, FitWindow(4, 3, 1, kValid), {3, 5}),
              ElementsAre(0, 8, 0, 0));
}

TEST_P(PoolingTest, TheLargestWithNanIsNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const PoolingShape shape = {Kind::kMax, 1, FitWindow(1, 1, 1, kValid),
                              FitWindow(6, 3, 3, kValid), 1};
  float* const y = Put(std::vector<float>{0, 0});
  EXPECT_OK(
      Make(shape)->Forward(Put(std::vector<float>{1, nan, 2, nan, 4, 5}), y));
  EXPECT_THAT(Get(y, 2), testing::Each(testing::IsNan()));
  EXPECT_THAT(
      MaxGradient({1, nan, 2, 3, 5, 4}, FitWindow(6, 3, 3, kValid), {7, 8}),
      ElementsAre(0, 7, 0, 0, 8, 0));
}

TEST_P(PoolingTest, TheLargestOfMinusInfinitiesIsOne) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_THAT(
      MaxGradient({-infinity, -infinity}, FitWindow(2, 2, 2, kValid), {3}),
      ElementsAre(3, 0));
}

TEST(PoolingThreadsTest, TwoThreadsComputeWhatOneDoes) {
  const WindowAxis axis = FitWindow(32, 3, 2, kSame);
  for (const Kind kind : {Kind::kMax, Kind::kAverage}) {
    const PoolingShape shape = {kind, 8, axis, axis, 16};
    const std::vector<float> x = Floats(Random(shape.x_size(), 1));
    const std::vector<float> dy = Floats(Random(shape.y_size(), 2));
    std::vector<std::vector<float>> results;
    for (const int threads : {1, 2}) {
      auto device = *Device::Open("cpu", {.threads = threads});
      auto pooling = *Pooling::Create(*device, shape);
      std::vector<float> y(shape.y_size());
      EXPECT_OK(pooling->Forward(x.data(), y.data()));
      std::vector<float> dx(shape.x_size());
      EXPECT_OK(
          pooling->InputGradient(x.data(), y.data(), dy.data(), dx.data()));
      results.push_back(std::move(y));
      results.push_back(std::move(dx));
    }
    EXPECT_EQ(results[2], results[0]);
    EXPECT_EQ(results[3], results[1]);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, PoolingTest, DevicesUnderTest(), DeviceName);

}  // namespace
}  // namespace parasol
