#include "ml/device/device.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/device/testing/device_fixture.h"

namespace parasol {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(DeviceOpenTest, CpuSaysItsThreads) {
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<Device> device, Device::Open("cpu"));
  EXPECT_EQ(device->kind(), Device::Kind::kCpu);
  EXPECT_EQ(device->name(), "cpu (1 thread)");
  ASSERT_OK_AND_ASSIGN(device, Device::Open("cpu", {.threads = 2}));
  EXPECT_EQ(device->name(), "cpu (2 threads)");
}

TEST(DeviceOpenTest, AutoTakesCudaWhereThereIsOneAndTheCpuElsewhere) {
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<Device> device, Device::Open("auto"));
  EXPECT_EQ(device->kind(), Device::Open("cuda:0").ok() ? Device::Kind::kCuda
                                                        : Device::Kind::kCpu);
}

TEST(DeviceOpenTest, WhatIsNoDeviceIsNamed) {
  struct Case {
    std::string name;
    std::string want;
  };
  const Case cases[] = {
      {"", "device \"\""},
      {"tpu", "device \"tpu\": there is no such device; use auto, cpu"},
      {"gpu:999", "device \"cuda:999\": this "},
      {"cuda:", "device \"cuda:\""},
      {"cuda:-1", "device \"cuda:-1\""},
      {"cuda:999", "device \"cuda:999\": this "},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    EXPECT_THAT(
        Device::Open(c.name),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.want)));
    EXPECT_THAT(Device::CheckName(c.name),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

TEST(DeviceOpenTest, NamesThatEveryMachineHasPassTheCheck) {
  EXPECT_OK(Device::CheckName("auto"));
  EXPECT_OK(Device::CheckName("cpu"));
  EXPECT_OK(Device::CheckThreads(1));
}

TEST(DeviceOpenTest, AProcessorHasLogicalDevices) {
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<Device> device, Device::Open("cpu:1"));
  EXPECT_EQ(device->kind(), Device::Kind::kCpu);
  EXPECT_OK(Device::CheckName("/device:CPU:2"));
}

TEST(DeviceOpenTest, AllCudaDevicesThatAreNamedCanBeOpened) {
  for (const std::string& name : Device::CudaNames()) {
    EXPECT_OK(Device::Open(name)) << name;
  }
  EXPECT_EQ(Device::CudaNames().empty(), !Device::CheckName("cuda:0").ok());
}

TEST(DeviceOpenTest, ThreadsAreBounded) {
  EXPECT_THAT(Device::Open("cpu", {.threads = 0}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("0 compute threads")));
}

class DeviceMemoryTest : public DeviceTest {};

TEST_P(DeviceMemoryTest, ArraysStartZeroedAndAligned) {
  for (size_t size : {0, 1, 15, 1000}) {
    SCOPED_TRACE(size);
    ASSERT_OK_AND_ASSIGN(Array<float> array, device().NewArray<float>(size));
    ASSERT_OK_AND_ASSIGN(Array<float> host, device().NewHostArray<float>(size));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(array.data()) % 64, 0u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(host.data()) % 64, 0u);
    EXPECT_EQ(array.size(), size);
    EXPECT_THAT(host.span(), Each(0));
    EXPECT_THAT(Get(array.data(), size), Each(0));
  }
}

TEST_P(DeviceMemoryTest, CopiesOfDifferentStreamsFollowTheOrderAskedFor) {
  ASSERT_OK_AND_ASSIGN(Array<float> host, device().NewHostArray<float>(3));
  ASSERT_OK_AND_ASSIGN(Array<float> array, device().NewArray<float>(3));
  ASSERT_OK_AND_ASSIGN(Array<float> back, device().NewHostArray<float>(3));
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<Device::Event> arrived,
                       device().NewEvent());
  EXPECT_OK(device().Wait(*arrived)) << "never recorded";
  for (int i = 0; i < 3; ++i) host.data()[i] = i + 1;
  EXPECT_OK(device().Copy(Device::Stream::kCopyIn,
                          absl::Span<const float>(host.span()), array.data()));
  EXPECT_OK(device().Order(Device::Stream::kCopyIn, Device::Stream::kCopyOut));
  EXPECT_OK(device().Copy(Device::Stream::kCopyOut,
                          absl::Span<const float>(array.span()), back.data()));
  EXPECT_OK(device().Record(Device::Stream::kCopyOut, *arrived));
  EXPECT_OK(device().Wait(*arrived));
  EXPECT_THAT(back.span(), ElementsAre(1, 2, 3));
}

TEST_P(DeviceMemoryTest, TooLargeAnArrayIsAnErrorThatNamesItsBytes) {
  EXPECT_THAT(device().NewArray<float>(size_t{1} << 50),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("4503599627370496 bytes")));
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceMemoryTest, DevicesUnderTest(),
                         DeviceName);

}  // namespace
}  // namespace parasol
