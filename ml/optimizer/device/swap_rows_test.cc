#include "ml/optimizer/device/swap_rows.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "base/status_matchers.h"
#include "gtest/gtest.h"
#include "ml/device/testing/device_fixture.h"

namespace parasol {
namespace {

class SwapRowsTest : public DeviceTest {};

INSTANTIATE_TEST_SUITE_P(Devices, SwapRowsTest, DevicesUnderTest(), DeviceName);

// Rows shorter and longer than a warp; some elements of both sides stay.
TEST_P(SwapRowsTest, EachRowChangesPlacesWithItsPartOfTheBuffer) {
  const std::vector<uint32_t> widths = {1, 31, 32, 33, 100, 7, 1, 64, 5};
  constexpr uint32_t kElements = 600;
  std::vector<float> on_device(kElements), in_buffer(kElements);
  std::iota(on_device.begin(), on_device.end(), 0.f);
  std::iota(in_buffer.begin(), in_buffer.end(), 1000.f);
  float* const memory = Put(on_device);
  float* const buffer = Put(in_buffer);
  std::vector<SwappedRow> rows;
  uint32_t first = 3, end = kElements - 2;
  for (const uint32_t width : widths) {
    end -= width;
    rows.push_back({.row = memory + first, .begin = end, .floats = width});
    std::swap_ranges(on_device.begin() + first,
                     on_device.begin() + first + width,
                     in_buffer.begin() + end);
    first += width + 2;
  }
  ASSERT_OK(SwapRows(device(), Put(rows), rows.size(), buffer));
  EXPECT_EQ(Get(memory, kElements), on_device);
  EXPECT_EQ(Get(buffer, kElements), in_buffer);
}

TEST_P(SwapRowsTest, NoRowsAreNoWork) {
  EXPECT_OK(SwapRows(device(), nullptr, 0, nullptr));
}

}  // namespace
}  // namespace parasol
