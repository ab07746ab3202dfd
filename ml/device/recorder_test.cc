#include "ml/device/recorder.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/device/device.h"
#include "ml/device/testing/device_fixture.h"
#include "ml/kernel/add.h"

namespace parasol {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

// Doubles an array of the device, and brings it to the host.
class RecorderTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped()) return;
    values_ = Put(std::vector<float>{1, 2, 3});
    ASSERT_OK_AND_ASSIGN(result_, device().NewHostArray<float>(3));
    ASSERT_OK_AND_ASSIGN(fetched_, device().NewEvent());
  }

  absl::Status Enqueue() {
    RETURN_IF_ERROR(
        Add(device(), values_, values_, 3, AddEpilogue::kNone, values_));
    return Fetch(values_, 3);
  }

  // Brings `size` elements to the host, where Result() waits for them.
  absl::Status Fetch(const float* from, int64_t size) {
    RETURN_IF_ERROR(
        device().Order(Device::Stream::kCompute, Device::Stream::kCopyOut));
    RETURN_IF_ERROR(device().Copy(Device::Stream::kCopyOut,
                                  absl::MakeConstSpan(from, size),
                                  result_.data()));
    return device().Record(Device::Stream::kCopyOut, *fetched_);
  }

  // Brings new values to the device, behind which kernels come.
  absl::Status Bring(const Array<float>& values) {
    RETURN_IF_ERROR(device().Copy(Device::Stream::kCopyIn,
                                  absl::Span<const float>(values.span()),
                                  values_));
    return device().Order(Device::Stream::kCopyIn, Device::Stream::kCompute);
  }

  absl::Span<const float> Result() {
    EXPECT_OK(device().Wait(*fetched_));
    return result_.span();
  }

  absl::StatusOr<std::unique_ptr<Recorder::Recording>> Record() {
    return device().recorder()->Record([this] { return Enqueue(); });
  }
  absl::Status Replay(Recorder::Recording& recording) {
    return device().recorder()->Replay(recording);
  }

  float* values_ = nullptr;
  Array<float> result_;
  std::unique_ptr<Device::Event> fetched_;
};

TEST_P(RecorderTest, NothingComesToTheHostBeforeAReplay) {
  ASSERT_OK_AND_ASSIGN(const auto recording, Record());
  EXPECT_THAT(Result(), ElementsAre(0, 0, 0));
}

TEST_P(RecorderTest, EachReplayIsWaitedForAndReadsWhatIsThereThen) {
  ASSERT_OK(Enqueue());
  EXPECT_THAT(Result(), ElementsAre(2, 4, 6));
  ASSERT_OK_AND_ASSIGN(const auto recording, Record());
  ASSERT_OK_AND_ASSIGN(Array<float> next, device().NewHostArray<float>(3));
  for (int i = 1; i <= 20; ++i) {
    for (int j = 0; j < 3; ++j) next.data()[j] = i + 10 * j;
    ASSERT_OK(Bring(next));
    ASSERT_OK(Replay(*recording));
    EXPECT_THAT(Result(), ElementsAre(2 * i, 2 * (i + 10), 2 * (i + 20)));
  }
}

// On a GPU the kernels of a replay take longer than the call that enqueues it.
TEST_P(RecorderTest, AReplayIsWaitedForHoweverLongItTakes) {
  constexpr int64_t kSize = 1 << 12, kKernels = 200;
  float* const ones = Put(std::vector<float>(kSize, 1));
  float* const sums = Put(std::vector<float>(kSize));
  ASSERT_OK_AND_ASSIGN(result_, device().NewHostArray<float>(kSize));
  const auto enqueue = [&]() -> absl::Status {
    const float* from = values_;
    for (int i = 0; i < kKernels; ++i) {
      RETURN_IF_ERROR(
          Add(device(), from, ones, kSize, AddEpilogue::kNone, sums));
      from = sums;
    }
    return Fetch(sums, kSize);
  };
  values_ = Put(std::vector<float>(kSize));
  ASSERT_OK(enqueue());
  EXPECT_THAT(Result(), Each(kKernels));
  ASSERT_OK_AND_ASSIGN(const auto recording,
                       device().recorder()->Record(enqueue));
  ASSERT_OK_AND_ASSIGN(Array<float> next, device().NewHostArray<float>(kSize));
  for (int i = 1; i <= 3; ++i) {
    std::fill_n(next.data(), kSize, 1000.0f * i);
    ASSERT_OK(Bring(next));
    ASSERT_OK(Replay(*recording));
    EXPECT_THAT(Result(), Each(1000 * i + kKernels));
  }
}

TEST_P(RecorderTest, WorkThatCannotBeRecordedLeavesTheDeviceAsItWas) {
  Recorder& recorder = *device().recorder();
  const auto allocates = [this]() -> absl::Status {
    RETURN_IF_ERROR(Enqueue());
    return device().NewArray<float>(3).status();
  };
  EXPECT_FALSE(recorder.Record(allocates).ok());
  const auto waits_and_forgets = [this]() -> absl::Status {
    RETURN_IF_ERROR(Enqueue());
    device().Synchronize().IgnoreError();
    return absl::OkStatus();
  };
  EXPECT_FALSE(recorder.Record(waits_and_forgets).ok());
  EXPECT_THAT(
      recorder.Record([] { return absl::InvalidArgumentError("not this"); }),
      StatusIs(absl::StatusCode::kInvalidArgument));

  values_ = Put(std::vector<float>{1, 2, 3});
  ASSERT_OK(Enqueue());
  EXPECT_THAT(Result(), ElementsAre(2, 4, 6));
  ASSERT_OK_AND_ASSIGN(const auto recording, Record());
  ASSERT_OK(Replay(*recording));
  EXPECT_EQ(Result()[1], 2 * Result()[0]);
}

INSTANTIATE_TEST_SUITE_P(Devices, RecorderTest, RecordersUnderTest(),
                         DeviceName);

TEST(DeviceReleasesTest, AreCountedWhenAnArrayGoes) {
  const std::unique_ptr<Device> device = *Device::Open("cpu");
  ASSERT_OK_AND_ASSIGN(Array<float> array, device->NewArray<float>(3));
  EXPECT_EQ(device->releases(), 0u);
  ASSERT_OK_AND_ASSIGN(array, device->NewArray<float>(5));
  EXPECT_EQ(device->releases(), 1u);
}

TEST(DeviceRecorderTest, IsThereOnlyWhereItWasAskedFor) {
  for (const char* name : {"cpu", "cuda:0"}) {
    const auto device = Device::Open(name);
    if (!device.ok()) continue;
    EXPECT_EQ((*device)->recorder(), nullptr) << name;
  }
  ASSERT_OK_AND_ASSIGN(const auto cpu,
                       Device::Open("cpu", {.cuda_graphs = true}));
  EXPECT_EQ(cpu->recorder(), nullptr);
}

}  // namespace
}  // namespace parasol
