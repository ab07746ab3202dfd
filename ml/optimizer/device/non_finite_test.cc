#include "ml/optimizer/device/non_finite.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/device/testing/device_fixture.h"

namespace parasol {
namespace {

class NonFiniteTest : public DeviceTest {};

INSTANTIATE_TEST_SUITE_P(Devices, NonFiniteTest, DevicesUnderTest(),
                         DeviceName);

TEST_P(NonFiniteTest, AddsTheNumberOfThoseThatAreNotFinite) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> values(3000, 1e38f);
  float* const count = Put(std::vector<float>{0});
  ASSERT_OK(CountNonFinite(device(), Put(values), 3000, count));
  EXPECT_THAT(Get(count, 1), testing::ElementsAre(0));
  values[0] = NAN;
  values[700] = kInfinity;
  values[2999] = -kInfinity;
  float* const on_device = Put(values);
  ASSERT_OK(CountNonFinite(device(), on_device, 3000, count));
  EXPECT_THAT(Get(count, 1), testing::ElementsAre(3));
  ASSERT_OK(CountNonFinite(device(), on_device, 2999, count));
  EXPECT_THAT(Get(count, 1), testing::ElementsAre(5));
}

}  // namespace
}  // namespace parasol
