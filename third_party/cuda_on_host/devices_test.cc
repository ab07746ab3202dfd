// Several devices of the stand-in. BUILD says that there are four.

#include <cuda_runtime.h>

#include <cmath>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/cuda_on_host/settings.h"

namespace {

using ::cuda_on_host::Late;
using ::cuda_on_host::Launch;

constexpr int kDevices = 4;

__global__ void Set(float* x, float value) { *x = value; }
__global__ void AddOther(float* x, const float* other) { *x += *other; }

// A stream, an event and a float on each device, and a float on the host.
class DevicesTest : public ::testing::TestWithParam<Late> {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    // After a fork ThreadSanitizer no longer sees orders.
    GTEST_FLAG_SET(death_test_style, "threadsafe");
#endif
    int count = 0;
    ASSERT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
    ASSERT_EQ(count, kDevices);
    cuda_on_host::SetSchedule({.seed = 1, .late = GetParam()});
    for (int device = 0; device < kDevices; ++device) {
      cudaSetDevice(device);
      void* memory = nullptr;
      ASSERT_EQ(cudaMalloc(&memory, sizeof(float)), 0);
      x_[device] = static_cast<float*>(memory);
      ASSERT_EQ(
          cudaStreamCreateWithFlags(&stream_[device], cudaStreamNonBlocking),
          0);
      ASSERT_EQ(
          cudaEventCreateWithFlags(&event_[device], cudaEventDisableTiming), 0);
    }
    void* memory = nullptr;
    ASSERT_EQ(cudaHostAlloc(&memory, sizeof(float), 0), 0);
    host_ = static_cast<float*>(memory);
  }
  void TearDown() override {
    for (int device = 0; device < kDevices; ++device) {
      cudaStreamDestroy(stream_[device]);
      cudaEventDestroy(event_[device]);
      cudaFree(x_[device]);
    }
    cudaFreeHost(host_);
    cuda_on_host::SetSchedule({});
  }

  void SetOn(int device, float value) {
    cudaSetDevice(device);
    Launch(Set, 1, 1, stream_[device], x_[device], value);
  }
  float Get(int device) {
    EXPECT_EQ(cudaMemcpyAsync(host_, x_[device], sizeof(float),
                              cudaMemcpyDefault, stream_[device]),
              cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream_[device]), cudaSuccess);
    return *host_;
  }
  // Makes `later` wait for what is on `earlier` now.
  void Order(int earlier, int later) {
    ASSERT_EQ(cudaEventRecord(event_[earlier], stream_[earlier]), 0);
    ASSERT_EQ(cudaStreamWaitEvent(stream_[later], event_[earlier]), 0);
  }

  cudaStream_t stream_[kDevices] = {};
  cudaEvent_t event_[kDevices] = {};
  float* x_[kDevices] = {};
  float* host_ = nullptr;
};

TEST_P(DevicesTest, AValueGoesRoundByCopiesBetweenPeers) {
  SetOn(0, 7);
  for (int device = 1; device < kDevices; ++device) {
    Order(device - 1, device);
    ASSERT_EQ(cudaMemcpyPeerAsync(x_[device], device, x_[device - 1],
                                  device - 1, sizeof(float), stream_[device]),
              cudaSuccess);
  }
  EXPECT_EQ(Get(kDevices - 1), 7);
}

TEST_P(DevicesTest, AMissingOrderBetweenDevicesShows) {
  const auto copy = [this] {
    SetOn(0, 7);
    cudaMemcpyPeerAsync(x_[1], 1, x_[0], 0, sizeof(float), stream_[1]);
    const float copied = Get(1);
    EXPECT_EQ(cudaStreamSynchronize(stream_[0]), cudaSuccess);
    return copied;
  };
#ifdef __SANITIZE_THREAD__
  EXPECT_DEATH(copy(), "data race");
#else
  const float copied = copy();
  if (GetParam() == Late::kNothing) {
    EXPECT_EQ(copied, 7);
  }
  if (GetParam() == Late::kCompute) {
    EXPECT_TRUE(std::isnan(copied));
  }
#endif
}

TEST_P(DevicesTest, WorkOfAnotherDeviceIsRefused) {
  cudaSetDevice(1);
  Launch(Set, 1, 1, stream_[0], x_[0], 1.0f);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventRecord(event_[1], stream_[0]),
            cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaMemcpyPeerAsync(x_[1], 4, x_[0], 0, sizeof(float), stream_[0]),
            cudaErrorInvalidDevice)
      << "there are 4";
  EXPECT_EQ(cudaMemcpyPeerAsync(x_[1], 0, x_[0], 0, sizeof(float), stream_[0]),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaSetDevice(kDevices), cudaErrorInvalidDevice);
}

INSTANTIATE_TEST_SUITE_P(Schedules, DevicesTest,
                         ::testing::Values(Late::kNothing, Late::kCompute,
                                           Late::kRandom));

class PeersTest : public DevicesTest {};

TEST_P(PeersTest, AKernelMayUseThoseThatWereEnabled) {
#ifdef PARASOL_SANITIZER
  GTEST_SKIP() << "the sanitizer's own instrumentation is there";
#endif
  int may = 0;
  ASSERT_EQ(cudaDeviceCanAccessPeer(&may, 2, 3), cudaSuccess);
  EXPECT_EQ(may, 1);
  SetOn(3, 5);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  SetOn(2, 1);
  EXPECT_DEATH(Launch(AddOther, 1, 1, stream_[2], x_[2], x_[3]), "no peer");
  ASSERT_EQ(cudaDeviceEnablePeerAccess(3, 0), cudaSuccess);
  EXPECT_EQ(cudaDeviceEnablePeerAccess(3, 0),
            cudaErrorPeerAccessAlreadyEnabled);
  Launch(AddOther, 1, 1, stream_[2], x_[2], x_[3]);
  EXPECT_EQ(Get(2), 6);
  cudaSetDevice(3);
  EXPECT_DEATH(Launch(AddOther, 1, 1, stream_[3], x_[3], x_[2]), "no peer")
      << "in one direction";
}

INSTANTIATE_TEST_SUITE_P(Schedules, PeersTest,
                         ::testing::Values(Late::kNothing));

}  // namespace
