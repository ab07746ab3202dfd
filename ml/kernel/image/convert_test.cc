#include "ml/kernel/image/convert.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/device/testing/bfloat16.h"
#include "ml/device/testing/device_fixture.h"

namespace parasol {
namespace {

// Whole packs, a part of one, and more than a grid's threads.
constexpr int64_t kSizes[] = {1, 3, 4, 7, 64, 1003};

class ConvertTest : public DeviceTest {};

TEST_P(ConvertTest, RoundsToTheNearestAndOfTwoToTheEvenOne) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {1,
                                1 + 0x1p-8f,  // as near to 1
                                1 + 0x1p-8f + 0x1p-20f,
                                1 + 0x1p-7f + 0x1p-8f,  // as near to two odd
                                -(1 + 0x1p-8f),
                                0,
                                infinity,
                                -infinity,
                                std::numeric_limits<float>::max()};
  const std::vector<float> want = {1, 1,        1 + 0x1p-7f, 1 + 0x1p-6f, -1,
                                   0, infinity, -infinity,   infinity};
  const int64_t size = static_cast<int64_t>(x.size());
  Bfloat16* const y = Put(std::vector<Bfloat16>(size));
  EXPECT_OK(Convert(device(), Put(x), size, y));
  EXPECT_EQ(ToFloats(Get(y, size)), want);
}

TEST_P(ConvertTest, NanStaysNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Bfloat16* const y = Put(std::vector<Bfloat16>(1));
  float* const back = Put(std::vector<float>(1));
  EXPECT_OK(Convert(device(), Put(std::vector<float>{nan}), 1, y));
  EXPECT_OK(Convert(device(), y, 1, back));
  EXPECT_TRUE(std::isnan(Get(back, 1)[0]));
}

TEST_P(ConvertTest, BackIsExactForAllSizesAndAddresses) {
  for (const int64_t size : kSizes) {
    for (const int64_t offset : {0, 1}) {
      SCOPED_TRACE(testing::Message() << size << " at " << offset);
      const std::vector<float> x = RandomBfloat16s(size + offset, 1);
      Bfloat16* const y = Put(std::vector<Bfloat16>(size + offset));
      // One more, which is not written.
      float* const back = Put(std::vector<float>(size + offset + 1, 7));
      EXPECT_OK(Convert(device(), Put(x) + offset, size, y + offset));
      EXPECT_OK(Convert(device(), y + offset, size, back + offset));
      std::vector<float> want = x;
      std::fill_n(want.begin(), offset, 7);
      want.push_back(7);
      EXPECT_EQ(Get(back, size + offset + 1), want);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, ConvertTest, DevicesUnderTest(), DeviceName);

}  // namespace
}  // namespace parasol
