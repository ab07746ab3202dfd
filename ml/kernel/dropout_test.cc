#include "ml/kernel/dropout.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/device/testing/device_fixture.h"
#include "ml/initializer/philox.h"
#include "ml/kernel/pass_argument.h"

namespace parasol {
namespace {

using ::testing::ElementsAreArray;
using ::testing::Ne;

bool IsDropped(double rate, uint64_t seed, uint64_t i) {
  const uint64_t counter = i / 64 * 16 + i % 16;
  const PhiloxCounter random = Philox4x32(
      {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0,
       0},
      {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  return random[i / 16 % 4] < rate * 0x1p32;
}

class DropoutTest : public DeviceTest {
 protected:
  std::vector<float> Run(double rate, uint64_t seed,
                         const std::vector<float>& x) {
    float* const y = Put(x);
    constexpr uint64_t kOffset = 0x9876543210;
    const StoredSeed stored = {
        .base = Put(std::vector<uint64_t>{seed - kOffset}), .offset = kOffset};
    EXPECT_OK(Dropout(device(), rate, stored, y, x.size(), y));
    return Get(y, x.size());
  }
};

TEST_P(DropoutTest, DropsWherePhiloxSays) {
  for (int64_t size : {1, 63, 64, 65, 1000}) {
    SCOPED_TRACE(size);
    const std::vector<float> x(size, 3);
    const uint64_t seed = 0x123456789abcdef;
    std::vector<float> want;
    for (int64_t i = 0; i < size; ++i) {
      want.push_back(IsDropped(0.25, seed, i) ? 0 : 4);
    }
    EXPECT_THAT(Run(0.25, seed, x), ElementsAreArray(want));
  }
}

TEST_P(DropoutTest, TheShareThatIsDroppedIsTheRate) {
  constexpr int64_t kSize = 100000;
  for (double rate : {0.0, 0.1, 0.5, 0.9}) {
    const std::vector<float> y = Run(rate, 1, std::vector<float>(kSize, 1));
    const double dropped = std::count(y.begin(), y.end(), 0.0f);
    // Five standard deviations.
    EXPECT_NEAR(dropped / kSize, rate,
                5 * std::sqrt(rate * (1 - rate) / kSize));
  }
}

TEST_P(DropoutTest, AnotherSeedDropsOthers) {
  const std::vector<float> x(1000, 1);
  EXPECT_THAT(Run(0.5, 1, x), Ne(Run(0.5, 2, x)));
  EXPECT_THAT(Run(0.5, 1, x), Ne(Run(0.5, uint64_t{1} << 32, x)));
}

INSTANTIATE_TEST_SUITE_P(Devices, DropoutTest, DevicesUnderTest(), DeviceName);

}  // namespace
}  // namespace parasol
