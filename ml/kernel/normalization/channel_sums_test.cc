#include "ml/kernel/normalization/channel_sums.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/device/device.h"
#include "ml/device/testing/device_fixture.h"
#include "ml/kernel/testing/reference.h"

namespace parasol {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pointwise;

// Float32 sums of 32 values below 1, then sums in double.
constexpr float kTolerance = 1e-5;

TEST(WideRowsTest, AWideRowRepeatsTheChannels) {
  const WideRows rows(/*rows=*/100, /*channels=*/100);
  EXPECT_EQ(rows.width, 200);
  EXPECT_EQ(rows.count(), 50);
  std::vector<float> channels(100), wide(200);
  channels[1] = 7;
  rows.Repeat(channels, wide.data());
  EXPECT_EQ(wide[101], 7);
}

TEST(ChannelSumsTest, RowsAreAddedUpOnAnyNumberOfThreads) {
  for (const int threads : {1, 2, 3}) {
    auto device = *Device::Open("cpu", {.threads = threads});
    for (const int64_t channels : {1, 3, 16, 100, 300}) {
      for (const int64_t rows : {1, 2, 77, 3000}) {
        SCOPED_TRACE(absl::StrCat(rows, "x", channels, ", ", threads));
        const reference::Matrix x = RandomMatrix(rows, channels, 1);
        const std::vector<float> values(x.values.begin(), x.values.end());
        std::vector<float> sums(channels, 7);
        ChannelSums(*device, WideRows(rows, channels), /*sums=*/1)
            .SumRows(values.data(), sums.data());
        const std::vector<double> want = reference::SumOfRows(x);
        EXPECT_THAT(sums,
                    Pointwise(FloatNear(kTolerance),
                              std::vector<float>(want.begin(), want.end())));
      }
    }
  }
}

TEST(ChannelSumsTest, SeveralSumsAreKeptApart) {
  auto device = *Device::Open("cpu");
  ChannelSums sums(*device, WideRows(/*rows=*/1000, /*channels=*/2),
                   /*sums=*/2);
  const int64_t width = WideRows(1000, 2).width;
  EXPECT_THAT(sums.Run([&](int64_t begin, int64_t size, float* part) {
    for (int64_t i = 0; i < size; ++i) {
      part[i % width] += 1;
      part[width + i % width] += (begin + i) % 2 == 0 ? 2 : 3;
    }
  }),
              ElementsAre(1000, 1000, 2000, 3000));
}

// A float32 alone would stop at 2^24.
TEST(ChannelSumsTest, ManyRowsCostNoPrecision) {
  auto device = *Device::Open("cpu");
  constexpr int64_t kRows = 1 << 25;
  ChannelSums sums(*device, WideRows(kRows, /*channels=*/1), /*sums=*/1);
  const int64_t width = WideRows(kRows, 1).width;
  EXPECT_THAT(sums.Run([&](int64_t begin, int64_t size, float* part) {
    for (int64_t i = 0; i < size; ++i) part[i % width] += 1;
  }),
              ElementsAre(DoubleNear(kRows, 0)));
}

}  // namespace
}  // namespace parasol
