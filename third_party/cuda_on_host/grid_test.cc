// Grids of the stand-in, and what it finds in them.

#include <cuda_runtime.h>

#include <atomic>
#include <new>
#include <numeric>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/cuda_on_host/settings.h"

namespace {

using ::cuda_on_host::Launch;
using ::testing::Each;
using ::testing::ElementsAre;

// A stream and an array on the device.
class GridTest : public ::testing::Test {
 protected:
  static constexpr int kSize = 256;

  GridTest() {
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), 0);
    EXPECT_EQ(cudaMalloc(&memory_, kSize * sizeof(float)), 0);
    EXPECT_EQ(cudaHostAlloc(&host_, kSize * sizeof(float), 0), 0);
    EXPECT_EQ(cudaMemsetAsync(memory_, 0, kSize * sizeof(float), stream_), 0);
  }
  ~GridTest() override {
    cudaFreeHost(host_);
    cudaFree(memory_);
    cudaStreamDestroy(stream_);
  }

  float* data() { return static_cast<float*>(memory_); }
  std::vector<float> Values(int size) {
    cudaMemcpyAsync(host_, memory_, size * sizeof(float), cudaMemcpyDefault,
                    stream_);
    cudaStreamSynchronize(stream_);
    const float* const begin = static_cast<const float*>(host_);
    return std::vector<float>(begin, begin + size);
  }

  cudaStream_t stream_ = nullptr;
  void* memory_ = nullptr;
  void* host_ = nullptr;
};

__global__ void WriteIndex(float* x) {
  const int block = blockIdx.x + gridDim.x * blockIdx.y;
  const int thread = threadIdx.x + blockDim.x * threadIdx.y;
  x[block * blockDim.x * blockDim.y + thread] = 100 * block + thread;
}

TEST_F(GridTest, EachThreadOfEachBlockRunsOnce) {
  Launch(WriteIndex, dim3(2, 2), dim3(3, 2), stream_, data());
  EXPECT_THAT(Values(24), ElementsAre(0, 1, 2, 3, 4, 5, 100, 101, 102, 103, 104,
                                      105, 200, 201, 202, 203, 204, 205, 300,
                                      301, 302, 303, 304, 305));
}

__global__ void Reverse(float* x, bool waits) {
  __shared__ float copy[64];
  copy[threadIdx.x] = x[threadIdx.x];
  if (waits) __syncthreads();
  x[threadIdx.x] = copy[63 - threadIdx.x];
}

TEST_F(GridTest, BarriersLetThreadsReadWhatOthersWrote) {
  Launch(WriteIndex, 1, 64, stream_, data());
  Launch(Reverse, 1, 64, stream_, data(), true);
  EXPECT_THAT(Values(3), ElementsAre(63, 62, 61));
}

__global__ void WarpTotal(float* x) {
  float value = threadIdx.x;
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    value += __shfl_xor_sync(0xffffffff, value, lanes);
  }
  x[threadIdx.x] = value;
}

TEST_F(GridTest, ShufflesExchangeWithinAWarp) {
  Launch(WarpTotal, 1, 64, stream_, data());
  const std::vector<float> totals = Values(64);
  EXPECT_EQ(totals[0], 31 * 32 / 2);
  EXPECT_EQ(totals[31], totals[0]);
  EXPECT_EQ(totals[32], totals[0] + 32 * 32);
}

__global__ void Count(float* x) { atomicAdd(x, 1.0f); }

TEST_F(GridTest, AtomicAdditionsOfAllThreadsCount) {
  Launch(Count, 7, 64, stream_, data());
  EXPECT_THAT(Values(1), ElementsAre(7 * 64));
}

__global__ void WaitForHost(std::atomic<int>* runs, std::atomic<int>* may_end) {
  runs->store(1);
  while (may_end->load() == 0) {
  }
}

// This test's own code is instrumented as the kernels are.
TEST_F(GridTest, OtherThreadsOfTheHostMayTouchWhatTheyLike) {
  auto* const flags = new (host_) std::atomic<int>[2] {};
  std::vector<int> touched(kSize);
  std::thread other([&] {
    while (flags[0].load() == 0) {
    }
    std::iota(touched.begin(), touched.end(), 1);
    flags[1].store(1);
  });
  Launch(WaitForHost, 1, 1, stream_, &flags[0], &flags[1]);
  other.join();
  EXPECT_EQ(touched.back(), kSize);
}

TEST_F(GridTest, ThreadsOfTheHostTakeTurns) {
  constexpr int kThreads = 4, kLaunches = 50;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([this] {
      for (int j = 0; j < kLaunches; ++j) {
        Launch(Count, 1, 64, stream_, data());
        Launch(Reverse, 1, 64, stream_, data() + 64, true);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(Values(1), ElementsAre(kThreads * kLaunches * 64));
}

TEST_F(GridTest, WhatCudaCannotLaunchIsRefused) {
  const dim3 illegal[] = {dim3(0), dim3(1, 65536), dim3(1, 1, 65536)};
  for (const dim3& grid : illegal) {
    Launch(Count, grid, 1, stream_, data());
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidConfiguration);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  }
  Launch(Count, 1, 1025, stream_, data());
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidConfiguration);
}

using GridDeathTest = GridTest;

__global__ void HalfWaits() {
  if (threadIdx.x < 32) __syncthreads();
}

TEST_F(GridDeathTest, ABarrierThatSomeThreadsMissEndsTheProgram) {
  EXPECT_DEATH(Launch(HalfWaits, 1, 64, stream_),
               "the barrier at grid_test.cc:[0-9]+");
}

__global__ void TwoBarriers() {
  if (threadIdx.x < 32) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}

TEST_F(GridDeathTest, DifferentBarriersAreNotOne) {
  EXPECT_DEATH(Launch(TwoBarriers, 1, 64, stream_), "different barriers");
}

__global__ void LaneLeaves(float* x) {
  if (threadIdx.x == 5) return;
  x[threadIdx.x] = __shfl_xor_sync(0xffffffff, 1.0f, 1);
}

TEST_F(GridDeathTest, ALaneThatLeftCannotBeShuffled) {
  EXPECT_DEATH(Launch(LaneLeaves, 1, 32, stream_, data()), "the shuffle at");
}

// What a kernel touches is checked unless a sanitizer does it.
class AccessDeathTest : public GridTest {
 protected:
  void SetUp() override {
#ifdef PARASOL_SANITIZER
    GTEST_SKIP() << "the sanitizer's own instrumentation is there";
#endif
  }
};

TEST_F(AccessDeathTest, AMissingBarrierIsARace) {
  EXPECT_DEATH(Launch(Reverse, 1, 64, stream_, data(), false),
               "a race|has not written");
}

__global__ void PlainCount(float* x) { *x += 1; }

TEST_F(AccessDeathTest, APlainSumOfSeveralThreadsIsARace) {
  EXPECT_DEATH(Launch(PlainCount, 1, 2, stream_, data()), "a race");
  EXPECT_DEATH(Launch(PlainCount, 2, 1, stream_, data()), "a race");
}

__global__ void Copy(const float* from, float* to) { *to = *from; }

TEST_F(AccessDeathTest, HostMemoryIsNotTheDevices) {
  float host = 1;
  EXPECT_DEATH(Launch(Copy, 1, 1, stream_, &host, data()), "a thread reads");
  EXPECT_DEATH(Launch(Copy, 1, 1, stream_, data(), &host), "a thread writes");
}

TEST_F(AccessDeathTest, ArraysHaveAnEnd) {
  Launch(Copy, 1, 1, stream_, data(), data() + kSize - 1);
  EXPECT_DEATH(Launch(Copy, 1, 1, stream_, data(), data() + kSize),
               "outside of an array|a thread writes");
}

#ifdef __SANITIZE_ADDRESS__
TEST_F(GridDeathTest, AddressSanitizerKnowsTheEndOfAnArrayToTheByte) {
  void* one = nullptr;
  ASSERT_EQ(cudaMalloc(&one, sizeof(float)), cudaSuccess);
  float* const x = static_cast<float*>(one);
  Launch(Copy, 1, 1, stream_, data(), x);
  EXPECT_DEATH(Launch(Copy, 1, 1, stream_, data(), x + 1), "use-after-poison");
  EXPECT_EQ(cudaFree(one), cudaSuccess);
}
#endif

__global__ void ReadShared(float* x) {
  __shared__ float never_written[32];
  x[threadIdx.x] = never_written[threadIdx.x];
}

TEST_F(AccessDeathTest, SharedMemoryStartsWithoutValues) {
  EXPECT_DEATH(Launch(ReadShared, 1, 32, stream_, data()), "has not written");
}

}  // namespace
