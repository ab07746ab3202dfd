#include "ml/kernel/relu.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/device/testing/device_fixture.h"
#include "ml/kernel/testing/reference.h"

namespace parasol {
namespace {

using ::testing::ElementsAreArray;

// No arithmetic, no rounding: results are compared exactly.
std::vector<float> Floats(const reference::Matrix& m) {
  return std::vector<float>(m.values.begin(), m.values.end());
}

class ReluTest : public DeviceTest {};

TEST_P(ReluTest, ForwardIsTheReference) {
  for (int64_t columns : {1, 7, 64, 1000}) {
    SCOPED_TRACE(columns);
    const reference::Matrix x = RandomMatrix(13, columns, 1);
    const MutableMatrixView y = Put(RandomMatrix(13, columns, 2));
    EXPECT_OK(Relu(device(), Put(x).data, y.size(), y.data));
    EXPECT_THAT(Get(y), ElementsAreArray(Floats(reference::Relu(x))));
  }
}

TEST_P(ReluTest, GradientIsTheReferenceAlsoInPlace) {
  for (int64_t columns : {1, 7, 64, 1000}) {
    SCOPED_TRACE(columns);
    const reference::Matrix y = reference::Relu(RandomMatrix(13, columns, 1));
    const reference::Matrix dy = RandomMatrix(13, columns, 2);
    const MutableMatrixView dx = Put(dy);
    EXPECT_OK(ReluGradient(device(), Put(y).data, dx.data, dx.size(), dx.data));
    EXPECT_THAT(Get(dx),
                ElementsAreArray(Floats(reference::ReluGradient(y, dy))));
  }
}

TEST_P(ReluTest, NanStaysNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  float* const x = Put(std::vector<float>{nan});
  EXPECT_OK(Relu(device(), x, 1, x));
  EXPECT_TRUE(std::isnan(Get(x, 1)[0]));
}

INSTANTIATE_TEST_SUITE_P(Devices, ReluTest, DevicesUnderTest(), DeviceName);

}  // namespace
}  // namespace parasol
