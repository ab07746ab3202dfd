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
#include "gmock/gmock.h"
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

// Opens "auto" and returns what that has logged.
std::string LogOfAuto(const std::string& faults) {
  cuda_on_host::SetFaults(faults);
  testing::internal::CaptureStderr();
  EXPECT_OK(Device::Open("auto"));
  cuda_on_host::SetFaults("");
  return testing::internal::GetCapturedStderr();
}

// GoogleTest's regular expressions have no lines: '.' is any character but one
// of new lines.
TEST(AutomaticDeviceTest, SaysWhichOneItTookAndWhy) {
  struct Case {
    std::string faults;
    std::string line;
  };
  const Case cases[] = {
      {"", "^I.*] device auto: cuda:0 \\(CUDA on the host\\)\n$"},
      // A machine without a GPU: nothing is amiss.
      {"cudaGetDeviceCount=100", "^$"},
      {"cudaGetDeviceCount=3",
       "^W.*] device auto: cpu .*: device \"cuda:0\": .*; mend that.*\n$"},
      {"cudaMalloc=2",
       "^W.*] device auto: cpu .*: device cuda:0: .*memory.*\n$"},
      {"libcublas.so.13=1",
       "^W.*] device auto: cpu .*: cuBLAS cannot be opened: .*\n$"}};
  for (const Case& c : cases) {
    EXPECT_THAT(LogOfAuto(c.faults), testing::ContainsRegex(c.line))
        << c.faults;
  }
}

struct Driver {
  cuda_on_host::Mark mark;
  cuda_on_host::Late late;
  bool has_recorder;
};

// A driver that let the host wait for a recording's events in vain would have
// workers send gradients that are not there yet.
TEST(RecorderOfCudaTest, IsThereIfTheHostCanWaitForItsEvents) {
  using cuda_on_host::Late;
  using cuda_on_host::Mark;
  for (const Driver& driver : {Driver{Mark::kAtLaunch, Late::kNothing, true},
                               Driver{Mark::kAtLaunch, Late::kCompute, true},
                               Driver{Mark::kAtLaunch, Late::kCopyOut, true},
                               Driver{Mark::kWhenRun, Late::kCompute, false},
                               Driver{Mark::kWhenRun, Late::kCopyOut, false}}) {
    cuda_on_host::SetExternalEvents(driver.mark);
    cuda_on_host::SetSchedule({.seed = 1, .late = driver.late});
#ifdef __SANITIZE_THREAD__
    // Such a driver is a race, which ends the program.
    if (!driver.has_recorder) continue;
#endif
    testing::internal::CaptureStderr();
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Device> device,
                         Device::Open("cuda:0", {.cuda_graphs = true}));
    const std::string log = testing::internal::GetCapturedStderr();
    EXPECT_EQ(device->recorder() != nullptr, driver.has_recorder);
    EXPECT_EQ(log.empty(), driver.has_recorder) << log;
    if (driver.has_recorder) continue;
    EXPECT_THAT(log, testing::ContainsRegex("^W.*] cuda:0 .*: steps are not "
                                            "recorded, .*wait for events"));
  }
  cuda_on_host::SetExternalEvents(Mark::kAtLaunch);
  cuda_on_host::SetSchedule({});
}

}  // namespace
}  // namespace parasol
