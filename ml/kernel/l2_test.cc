#include "ml/kernel/l2.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/device/testing/device_fixture.h"

namespace parasol {
namespace {

using ::testing::FloatNear;
using ::testing::Pointwise;

class L2Test : public DeviceTest {};

TEST_P(L2Test, TheLossIsTheSumOfSquaresAndTheGradientItsDerivative) {
  for (const int64_t size : {0, 1, 15, 4096, 70001}) {
    SCOPED_TRACE(absl::StrCat(size, " elements"));
    const std::vector<double> w = RandomMatrix(1, size, 3).values;
    const std::vector<double> before = RandomMatrix(1, size, 4).values;
    constexpr double kL2 = .25;
    double want = 0;
    std::vector<float> want_gradient;
    for (int64_t i = 0; i < size; ++i) {
      want += kL2 * w[i] * w[i];
      want_gradient.push_back(before[i] + 2 * kL2 * w[i]);
    }
    const float* on_device = Put(std::vector<float>(w.begin(), w.end()));
    float* loss = Put(std::vector<float>{7});
    float* gradient = Put(std::vector<float>(before.begin(), before.end()));
    ASSERT_OK(L2Loss(device(), on_device, size, kL2, loss));
    ASSERT_OK(AddL2Gradient(device(), on_device, size, kL2, gradient));
    EXPECT_NEAR(Get(loss, 1)[0], want, 1e-6 * want);
    EXPECT_THAT(Get(gradient, size), Pointwise(FloatNear(1e-6), want_gradient));
  }
}

// A sum in single precision would stop growing at 2^24.
TEST_P(L2Test, ManySmallSquaresAreNotLost) {
  constexpr int64_t kSize = 40'000'000;
  const float* w = Put(std::vector<float>(kSize, 1.f));
  float* loss = Put(std::vector<float>{0});
  ASSERT_OK(L2Loss(device(), w, kSize, 1, loss));
  EXPECT_EQ(Get(loss, 1)[0], kSize);
}

INSTANTIATE_TEST_SUITE_P(Devices, L2Test, DevicesUnderTest(), DeviceName);

}  // namespace
}  // namespace parasol
