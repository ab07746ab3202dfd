// What the CUDA device asks of CUDA, seen by third_party/cuda_on_host. Only
// with --config=cuda_host.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/status_matchers.h"
#include "gtest/gtest.h"
#include "ml/device/device.h"
#include "third_party/cuda_on_host/counts.h"
#include "third_party/cuda_on_host/settings.h"

namespace parasol {
namespace {

// A thread whose first call is for cuda:1 would make a context of some hundred
// MB on cuda:0, unless the call selects its device. Each call has a thread.
TEST(CudaOnHostTest, ADeviceLeavesOthersAlone) {
  ASSERT_EQ(cuda_on_host::DeviceCount(), 2) << "as BUILD says";
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Device> device,
                       Device::Open("cuda:1"));
  ASSERT_OK_AND_ASSIGN(Array<float> array, device->NewArray<float>(3));
  ASSERT_OK_AND_ASSIGN(Array<float> host, device->NewHostArray<float>(3));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Device::Event> event,
                       device->NewEvent());
  const std::map<std::string, std::function<void()>> calls = {
      {"Wait", [&] { EXPECT_OK(device->Wait(*event)); }},
      {"Synchronize", [&] { EXPECT_OK(device->Synchronize()); }},
      {"Free", [&] { array = Array<float>(); }},
      {"Free, of the host", [&] { host = Array<float>(); }}};
  for (const auto& [name, call] : calls) {
    std::thread(call).join();
    EXPECT_FALSE(cuda_on_host::HasContext(0)) << name;
  }
  EXPECT_TRUE(cuda_on_host::HasContext(1));
}

TEST(CudaOnHostTest, AThreadSelectsADeviceOnlyWhenItUsesAnother) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Device> first,
                       Device::Open("cuda:0"));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Device> second,
                       Device::Open("cuda:1"));
  const auto selections = [&](std::vector<Device*> used) {
    const int64_t before = cuda_on_host::CountsSoFar().device_selections;
    for (Device* device : used) {
      EXPECT_OK(device->NewArray<float>(3).status());
      EXPECT_OK(device->NewEvent().status());
    }
    return cuda_on_host::CountsSoFar().device_selections - before;
  };
  EXPECT_EQ(selections({second.get(), second.get(), second.get()}), 0);
  EXPECT_EQ(selections({first.get(), first.get(), second.get()}), 2);
  std::thread([&] {
    EXPECT_EQ(selections({second.get(), second.get()}), 1)
        << "each thread has a device of its own";
  }).join();
}

// CUDA takes no event of one device on a stream of another: a selection that
// is left out is an error.
TEST(CudaOnHostTest, CallsOfTwoDevicesMayAlternate) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Device> first,
                       Device::Open("cuda:0"));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Device> second,
                       Device::Open("cuda:1"));
  for (Device* device : {first.get(), second.get(), first.get()}) {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Device::Event> event,
                         device->NewEvent());
    EXPECT_OK(device->Record(Device::Stream::kCompute, *event));
    EXPECT_OK(device->Wait(*event));
  }
}

// A selection that failed is made again.
TEST(CudaOnHostTest, ADeviceThatCouldNotBeSelectedIsNotTaken) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Device> first,
                       Device::Open("cuda:0"));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Device> second,
                       Device::Open("cuda:1"));
  cuda_on_host::SetFaults("cudaSetDevice=46");
  EXPECT_THAT(first->NewEvent(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(second->NewEvent(), StatusIs(absl::StatusCode::kUnavailable));
  cuda_on_host::SetFaults("");
  EXPECT_OK(first->NewEvent());
}

// A worker waits for each gradient, and has not a core to itself.
TEST(CudaOnHostTest, AWaitForAnEventSleeps) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Device> device,
                       Device::Open("cuda:1"));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Device::Event> event,
                       device->NewEvent());
  EXPECT_OK(device->Record(Device::Stream::kCopyOut, *event));
  EXPECT_OK(device->Wait(*event));
  EXPECT_EQ(cuda_on_host::SpinningWaits(), 0);
}

TEST(CudaOnHostTest, AFullDeviceAndALostOneAreToldApart) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Device> device,
                       Device::Open("cuda:1"));
  cuda_on_host::SetFaults("cudaMalloc=2");
  EXPECT_THAT(device->NewArray<float>(3),
              StatusIs(absl::StatusCode::kResourceExhausted));
  cuda_on_host::SetFaults("cudaMemsetAsync=700");
  EXPECT_THAT(device->NewArray<float>(3),
              StatusIs(absl::StatusCode::kUnavailable));
  cuda_on_host::SetFaults("");
  EXPECT_OK(device->NewArray<float>(3));
}

}  // namespace
}  // namespace parasol
