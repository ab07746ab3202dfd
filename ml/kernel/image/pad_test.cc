#include "ml/kernel/image/pad.h"

#include <cstdint>
#include <vector>

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/device/testing/device_fixture.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;

class PadTest : public DeviceTest {
 protected:
  std::vector<float> Padded(const PadShape& shape,
                            const std::vector<float>& x) {
    float* const y = Put(std::vector<float>(shape.y_size(), 7));
    EXPECT_OK(Pad(device(), shape, Put(x), y));
    return Get(y, shape.y_size());
  }
};

TEST_P(PadTest, ZerosAreBeforeAndAfterEachAxis) {
  EXPECT_THAT(Padded({1, {3}, {1}, {2}}, {1, 2, 3}),
              ElementsAre(0, 1, 2, 3, 0, 0));
  EXPECT_THAT(Padded({2, {2, 2}, {1, 0}, {0, 1}}, {1, 2, 3, 4}),
              ElementsAre(0, 0, 0, 1, 2, 0, 3, 4, 0));
  EXPECT_THAT(Padded({3, {2, 1, 2}, {0, 1, 0}, {0, 0, 1}}, {1, 2, 3, 4}),
              ElementsAre(0, 0, 0, 1, 2, 0, 0, 0, 0, 3, 4, 0));
}

TEST_P(PadTest, NothingAroundIsACopy) {
  EXPECT_THAT(Padded({2, {1, 3}, {}, {}}, {1, 2, 3}), ElementsAre(1, 2, 3));
}

TEST_P(PadTest, TheGradientIsThatOfTheMiddle) {
  const PadShape shape = {2, {2, 2}, {1, 0}, {0, 1}};
  float* const dx = Put(std::vector<float>(4, 7));
  EXPECT_OK(PadGradient(
      device(), shape, Put(std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9}), dx));
  EXPECT_THAT(Get(dx, 4), ElementsAre(4, 5, 7, 8));
}

INSTANTIATE_TEST_SUITE_P(Devices, PadTest, DevicesUnderTest(), DeviceName);

}  // namespace
}  // namespace parasol
