// Groups of CUDA devices, as third_party/cuda_on_host plays them. Only with
// --config=cuda_host.

#include "ml/device/device_group.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/cuda_on_host/counts.h"
#include "third_party/cuda_on_host/settings.h"

namespace parasol {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

constexpr int kDevices = 3;
constexpr size_t kElements = 1000;

class CudaGroupTest : public testing::Test {
 protected:
  CudaGroupTest() {
    for (int i = 0; i < kDevices; ++i) {
      devices_.push_back(*Device::Open(absl::StrCat("cuda:", i)));
      arrays_.push_back(*devices_[i]->NewArray<float>(kElements));
      host_.push_back(*devices_[i]->NewHostArray<float>(kElements));
    }
  }

  absl::StatusOr<std::unique_ptr<DeviceGroup>> MakeGroup(
      const DeviceGroup::Options& options = {}) {
    std::vector<Device*> devices;
    for (const auto& device : devices_) devices.push_back(device.get());
    return DeviceGroup::Create(devices, options);
  }

  // Enqueues on the compute stream that the device's array has `value`.
  void Fill(int device, float value) {
    std::fill_n(host_[device].data(), kElements, value);
    EXPECT_OK(devices_[device]->Copy(
        Device::Stream::kCompute, absl::Span<const float>(host_[device].span()),
        arrays_[device].data()));
  }

  std::vector<float> Get(int device) {
    Array<float> host = *devices_[device]->NewHostArray<float>(kElements);
    EXPECT_OK(devices_[device]->Copy(
        Device::Stream::kCompute,
        absl::Span<const float>(arrays_[device].span()), host.data()));
    EXPECT_OK(devices_[device]->Synchronize());
    return std::vector<float>(host.data(), host.data() + kElements);
  }

  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<Array<float>> arrays_;
  std::vector<Array<float>> host_;
};

TEST_F(CudaGroupTest, WorkBehindAJoinSeesThatOfAllDevices) {
  for (const cuda_on_host::Late late :
       {cuda_on_host::Late::kNothing, cuda_on_host::Late::kCopyIn,
        cuda_on_host::Late::kRandom}) {
    cuda_on_host::SetSchedule({.seed = 3, .late = late});
    ASSERT_OK_AND_ASSIGN(const auto group, MakeGroup());
    Fill(0, 1);
    Fill(1, 2);
    Fill(2, 3);
    ASSERT_OK(group->Join());
    // By the one that has the target, and by the one that has the source.
    ASSERT_OK(group->Copy(0, {1, arrays_[1].data()}, {0, arrays_[0].data()},
                          kElements));
    ASSERT_OK(group->Join());
    ASSERT_OK(group->Copy(2, {2, arrays_[2].data()}, {1, arrays_[1].data()},
                          kElements));
    ASSERT_OK(group->Join());
    EXPECT_THAT(Get(0), Each(2));
    EXPECT_THAT(Get(1), Each(3));
  }
  cuda_on_host::SetSchedule({});
}

TEST_F(CudaGroupTest, NoCopyGoesThroughTheHostAndNoCallWaits) {
  ASSERT_OK_AND_ASSIGN(const auto group, MakeGroup());
  const cuda_on_host::Counts before = cuda_on_host::CountsSoFar();
  ASSERT_OK(group->Copy(0, {1, arrays_[1].data()}, {0, arrays_[0].data()},
                        kElements));
  ASSERT_OK(group->Join());
  const cuda_on_host::Counts after = cuda_on_host::CountsSoFar();
  EXPECT_EQ(after.copies_in, before.copies_in);
  EXPECT_EQ(after.copies_out, before.copies_out);
  EXPECT_EQ(after.copies_within, before.copies_within + 1);
  EXPECT_EQ(after.synchronizations, before.synchronizations);
  EXPECT_EQ(after.records, before.records + kDevices);
  EXPECT_EQ(after.stream_waits, before.stream_waits + kDevices * 2);
}

TEST_F(CudaGroupTest, NcclAddsTheArraysOfAllDevices) {
  ASSERT_OK_AND_ASSIGN(const auto group, MakeGroup({.nccl = true}));
  for (int i = 0; i < kDevices; ++i) Fill(i, 1.f + i);
  ASSERT_OK(group->AllReduce(
      {arrays_[0].data(), arrays_[1].data(), arrays_[2].data()}, kElements));
  for (int i = 0; i < kDevices; ++i) EXPECT_THAT(Get(i), Each(6));
}

// The device that a library has selected is not taken for ours.
TEST_F(CudaGroupTest, DevicesAreSelectedAnewBehindNccl) {
  ASSERT_OK_AND_ASSIGN(const auto group, MakeGroup({.nccl = true}));
  const std::vector<float*> arrays = {arrays_[0].data(), arrays_[1].data(),
                                      arrays_[2].data()};
  ASSERT_OK(group->AllReduce(arrays, kElements));
  const int64_t before = cuda_on_host::CountsSoFar().device_selections;
  ASSERT_OK(devices_[kDevices - 1]->NewEvent().status());
  EXPECT_EQ(cuda_on_host::CountsSoFar().device_selections, before + 1);
}

TEST_F(CudaGroupTest, ErrorsOfNcclNameTheDeviceAndWhatToDo) {
  cuda_on_host::SetFaults("libnccl.so.2=1");
  EXPECT_THAT(DeviceGroup::CheckNccl(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "NCCL cannot be opened: libnccl.so.2: not on this "
                       "machine"));
  EXPECT_THAT(MakeGroup({.nccl = true}),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  cuda_on_host::SetFaults("ncclCommInitAll=2");
  EXPECT_THAT(
      MakeGroup({.nccl = true}),
      StatusIs(absl::StatusCode::kUnavailable,
               "NCCL: ncclCommInitAll for cuda:0, cuda:1, cuda:2 (with "
               "NCCL_DEBUG=WARN it says more): unhandled system error"));
  cuda_on_host::SetFaults("");
  ASSERT_OK_AND_ASSIGN(const auto group, MakeGroup({.nccl = true}));
  const std::vector<float*> arrays = {arrays_[0].data(), arrays_[1].data(),
                                      arrays_[2].data()};
  cuda_on_host::SetFaults("ncclAllReduce=1@2");
  EXPECT_THAT(group->AllReduce(arrays, kElements),
              StatusIs(absl::StatusCode::kUnavailable,
                       "NCCL: ncclAllReduce on cuda:1 (CUDA on the host): "
                       "unhandled cuda error"));
  cuda_on_host::SetFaults("");
  EXPECT_OK(group->AllReduce(arrays, kElements))
      << "the group that failed was ended";
}

TEST_F(CudaGroupTest, ALineNamesDevicesWithoutAccessToEachOther) {
  testing::internal::CaptureStderr();
  ASSERT_OK(MakeGroup().status());
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  // A device has no room for another peer.
  cuda_on_host::SetFaults("cudaDeviceEnablePeerAccess=711");
  testing::internal::CaptureStderr();
  EXPECT_OK(MakeGroup());
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("devices without access to each other's memory, whose "
                        "copies go through the host's: cuda:0 to cuda:1, "));
  cuda_on_host::SetFaults("");
}

}  // namespace
}  // namespace parasol
