#include "worker/store/table/seat_swap.h"

#include <cstddef>
#include <vector>

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/device/testing/device_fixture.h"
#include "ml/device/testing/lazy_copy_device.h"
#include "worker/store/testing/full_device.h"

namespace parasol {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

class SeatSwapTest : public DeviceTest {};

INSTANTIATE_TEST_SUITE_P(Devices, SeatSwapTest,
                         testing::Values(kLazyCopies, "cuda:0"), DeviceName);

TEST_P(SeatSwapTest, RowsOfSeveralTablesChangePlaces) {
  float* const narrow = Put<float>({1});
  float* const wide = Put<float>({2, 3, 4});
  const std::vector<float> narrow_in = {10}, wide_in = {20, 30, 40};
  std::vector<float> narrow_out(1), wide_out(3);
  SeatSwap swap(device());
  ASSERT_OK(swap.Reserve(3));
  swap.Add({narrow, narrow_in.data(), narrow_out.data(), 1});
  swap.Add({wide, wide_in.data(), wide_out.data(), 3});
  EXPECT_EQ(swap.added(), 2);
  ASSERT_OK(swap.Send());
  EXPECT_EQ(swap.added(), 0);
  EXPECT_EQ(Get(narrow, 1), narrow_in);
  EXPECT_EQ(Get(wide, 3), wide_in);
  ASSERT_OK(swap.Finish());
  EXPECT_THAT(narrow_out, ElementsAre(1));
  EXPECT_THAT(wide_out, ElementsAre(2, 3, 4));
}

// Of a seat that was free nothing comes back.
TEST_P(SeatSwapTest, ARowMayComeWithoutOneThatLeaves) {
  float* const seat = Put<float>({1, 2});
  const std::vector<float> in = {3, 4};
  SeatSwap swap(device());
  ASSERT_OK(swap.Reserve(2));
  swap.Add({.seat = seat, .in = in.data(), .floats = 2});
  ASSERT_OK(swap.Send());
  ASSERT_OK(swap.Finish());
  EXPECT_EQ(Get(seat, 2), in);
}

// The row that leaves in one call comes back in the next one.
TEST_P(SeatSwapTest, ARowThatLeavesCanComeBackAtOnce) {
  float* const seat = Put<float>({1, 2});
  std::vector<float> first(2), second = {3, 4};
  SeatSwap swap(device());
  ASSERT_OK(swap.Reserve(2));
  swap.Add({seat, second.data(), first.data(), 2});
  ASSERT_OK(swap.Send());
  swap.Add({seat, first.data(), second.data(), 2});
  ASSERT_OK(swap.Send());
  EXPECT_THAT(Get(seat, 2), ElementsAre(1, 2));
  ASSERT_OK(swap.Finish());
  EXPECT_THAT(second, ElementsAre(3, 4));
}

TEST_P(SeatSwapTest, MoreRowsThanTheBufferHoldsGoInRounds) {
  constexpr size_t kRows = 50, kFloats = 3;
  float* const seats = Put(std::vector<float>(kRows * kFloats, 1));
  const std::vector<float> in(kRows * kFloats, 2);
  std::vector<float> out(kRows * kFloats);
  SeatSwap swap(device(), /*buffer_bytes=*/200);
  ASSERT_OK(swap.Reserve(kFloats));
  for (size_t i = 0; i < kRows * kFloats; i += kFloats) {
    swap.Add({seats + i, in.data() + i, out.data() + i, kFloats});
  }
  ASSERT_OK(swap.Send());
  ASSERT_OK(swap.Finish());
  EXPECT_EQ(Get(seats, in.size()), in);
  EXPECT_THAT(out, Each(1));
}

// Counts what it is asked for.
class CountingDevice : public LazyCopyDevice {
 public:
  absl::Status Order(Stream earlier, Stream later) override {
    ++orders;
    return LazyCopyDevice::Order(earlier, later);
  }
  absl::Status Record(Stream stream, Event& event) override {
    ++records;
    return LazyCopyDevice::Record(stream, event);
  }

  int copies = 0, orders = 0, records = 0;

 protected:
  absl::Status CopyBytes(Stream stream, const void* from, void* to,
                         size_t bytes) override {
    ++copies;
    return LazyCopyDevice::CopyBytes(stream, from, to, bytes);
  }
};

TEST(SeatSwapCallsTest, AllRowsAreOneCopyEachWay) {
  CountingDevice device;
  const Array<float> seats = *device.NewArray<float>(100);
  const std::vector<float> in(100);
  SeatSwap swap(device);
  ASSERT_OK(swap.Reserve(1));
  ASSERT_OK(swap.Send());
  ASSERT_OK(swap.Finish());
  EXPECT_EQ(device.copies + device.orders + device.records, 0) << "no rows";
  for (size_t i = 0; i < 100; ++i) {
    swap.Add({.seat = seats.data() + i, .in = &in[i], .floats = 1});
  }
  ASSERT_OK(swap.Send());
  ASSERT_OK(swap.Finish());
  EXPECT_EQ(device.copies, 2);
  EXPECT_EQ(device.orders, 2);
  EXPECT_EQ(device.records, 1);
}

TEST(SeatSwapBufferTest, IsSmallerOnAFullDevice) {
  FullDevice device;
  const Array<float> seat = *device.NewArray<float>(2);
  const std::vector<float> in = {3, 4};
  SeatSwap swap(device);
  device.LeaveFree(100);
  ASSERT_OK(swap.Reserve(2));
  swap.Add({.seat = seat.data(), .in = in.data(), .floats = 2});
  ASSERT_OK(swap.Send());
  ASSERT_OK(swap.Finish());
  EXPECT_THAT(seat.span(), ElementsAre(3, 4));
  SeatSwap another(device);
  device.LeaveFree(0);
  EXPECT_THAT(another.Reserve(2),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

}  // namespace
}  // namespace parasol
