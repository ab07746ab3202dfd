// Streams, memory and graphs of the stand-in, and its schedules.

#include <cuda_on_host.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/cuda_on_host/settings.h"

namespace {

using ::cuda_on_host::Late;
using ::cuda_on_host::Launch;
using ::testing::Each;

__global__ void Double(float* x) { x[threadIdx.x] *= 2; }

// Three streams as the project's, a float on the device, and two on the host.
class StreamsTest : public ::testing::TestWithParam<Late> {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    // After a fork ThreadSanitizer no longer sees orders.
    GTEST_FLAG_SET(death_test_style, "threadsafe");
#endif
    cuda_on_host::SetSchedule({.seed = 1, .late = GetParam()});
    for (cudaStream_t* stream : {&compute_, &in_, &out_}) {
      ASSERT_EQ(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking), 0);
    }
    ASSERT_EQ(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), 0);
    void* memory = nullptr;
    ASSERT_EQ(cudaMalloc(&memory, sizeof(float)), 0);
    x_ = static_cast<float*>(memory);
    ASSERT_EQ(cudaHostAlloc(&memory, 2 * sizeof(float), 0), 0);
    from_ = static_cast<float*>(memory);
    to_ = from_ + 1;
    *from_ = 3;
    *to_ = 0;
  }
  void TearDown() override {
    for (cudaStream_t stream : {compute_, in_, out_}) cudaStreamDestroy(stream);
    cudaEventDestroy(event_);
    cudaFree(x_);
    cudaFreeHost(from_);
    cuda_on_host::SetSchedule({});
  }

  cudaError_t CopyIn(cudaStream_t stream) {
    return cudaMemcpyAsync(x_, from_, sizeof(float), cudaMemcpyDefault, stream);
  }
  cudaError_t CopyOut(cudaStream_t stream) {
    return cudaMemcpyAsync(to_, x_, sizeof(float), cudaMemcpyDefault, stream);
  }
  void Order(cudaStream_t earlier, cudaStream_t later) {
    ASSERT_EQ(cudaEventRecord(event_, earlier), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(later, event_), cudaSuccess);
  }
  // Brings a number to the device, doubles it, and brings it back, with waits
  // of the host for orders. There is none behind the work of this kind.
  void BringBackWithout(Late kind) {
    EXPECT_EQ(CopyIn(in_), cudaSuccess);
    if (kind != Late::kCopyIn) cudaStreamSynchronize(in_);
    Launch(Double, 1, 1, compute_, x_);
    if (kind != Late::kCompute) cudaStreamSynchronize(compute_);
    EXPECT_EQ(CopyOut(out_), cudaSuccess);
    if (kind != Late::kCopyOut) cudaStreamSynchronize(out_);
    result_ = *to_;
    cudaDeviceSynchronize();
  }
  void Capture() {
    ASSERT_EQ(
        cudaStreamBeginCapture(compute_, cudaStreamCaptureModeThreadLocal),
        cudaSuccess);
  }

  cudaStream_t compute_ = nullptr, in_ = nullptr, out_ = nullptr;
  cudaEvent_t event_ = nullptr;
  float* x_ = nullptr;
  float* from_ = nullptr;
  float* to_ = nullptr;
  float result_ = 0;
};

TEST_P(StreamsTest, OrdersHoldUnderEachSchedule) {
  ASSERT_EQ(CopyIn(in_), cudaSuccess);
  Order(in_, compute_);
  Launch(Double, 1, 1, compute_, x_);
  Order(compute_, out_);
  ASSERT_EQ(CopyOut(out_), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(out_), cudaSuccess);
  EXPECT_EQ(*to_, 6);
}

#ifdef __SANITIZE_THREAD__
TEST_P(StreamsTest, AMissingOrderIsARaceWhateverIsLate) {
  BringBackWithout(Late::kNothing);
  for (Late missing : {Late::kCompute, Late::kCopyIn, Late::kCopyOut}) {
    EXPECT_DEATH(BringBackWithout(missing), "data race");
  }
}

// The nodes of a graph have the orders of the streams that were captured, and
// none beside.
TEST_P(StreamsTest, AMissingOrderInAGraphIsARaceToo) {
  for (const bool is_ordered : {true, false}) {
    Capture();
    Order(compute_, out_);
    Launch(Double, 1, 1, compute_, x_);
    if (is_ordered) Order(compute_, out_);
    ASSERT_EQ(CopyOut(out_), cudaSuccess);
    Order(out_, compute_);
    cudaGraph_t graph = nullptr;
    ASSERT_EQ(cudaStreamEndCapture(compute_, &graph), cudaSuccess);
    cudaGraphExec_t executable = nullptr;
    ASSERT_EQ(cudaGraphInstantiateWithFlags(&executable, graph, 0),
              cudaSuccess);
    const auto replay = [&] {
      cudaGraphLaunch(executable, compute_);
      cudaStreamSynchronize(compute_);
    };
    if (is_ordered) {
      replay();
    } else {
      EXPECT_DEATH(replay(), "data race");
    }
    cudaGraphExecDestroy(executable);
    cudaGraphDestroy(graph);
  }
}
#else
TEST_P(StreamsTest, MissingOrdersShow) {
  BringBackWithout(GetParam());
  switch (GetParam()) {
    case Late::kNothing:
    case Late::kRandom:
      EXPECT_EQ(result_, 6);
      break;
    case Late::kCompute:
      EXPECT_EQ(result_, 3);
      break;
    case Late::kCopyIn:
      EXPECT_TRUE(std::isnan(result_));
      break;
    case Late::kCopyOut:
      EXPECT_EQ(result_, 0);
      break;
  }
}
#endif  // __SANITIZE_THREAD__

TEST_P(StreamsTest, AnEventIsReadyInTheEnd) {
  ASSERT_EQ(CopyIn(in_), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event_, in_), cudaSuccess);
  int waits = 0;
  while (cudaEventQuery(event_) == cudaErrorNotReady) ++waits;
  EXPECT_EQ(waits > 0, GetParam() == Late::kCopyIn ||
                           (GetParam() == Late::kRandom && waits > 0));
}

TEST_P(StreamsTest, AGraphRunsWhenItIsLaunchedAndReadsWhatIsThereThen) {
  Capture();
  Launch(Double, 1, 1, compute_, x_);
  Order(compute_, out_);
  ASSERT_EQ(CopyOut(out_), cudaSuccess);
  ASSERT_EQ(cudaEventRecordWithFlags(event_, out_, cudaEventRecordExternal),
            cudaSuccess);
  cudaEvent_t joined = nullptr;
  ASSERT_EQ(cudaEventCreateWithFlags(&joined, 0), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(joined, out_), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(compute_, joined), cudaSuccess);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(compute_, &graph), cudaSuccess);
  cudaGraphExec_t executable = nullptr;
  ASSERT_EQ(cudaGraphInstantiateWithFlags(&executable, graph), cudaSuccess);
  EXPECT_EQ(*to_, 0);
  for (int i = 1; i <= 3; ++i) {
    *from_ = i;
    ASSERT_EQ(CopyIn(compute_), cudaSuccess);
    ASSERT_EQ(cudaGraphLaunch(executable, compute_), cudaSuccess);
    ASSERT_EQ(cudaEventSynchronize(event_), cudaSuccess);
    EXPECT_EQ(*to_, 2 * i);
  }
  EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(joined), cudaSuccess);
}

// What else could be read from CUDA's documentation.
TEST_P(StreamsTest, ExternalEventsMayBeMarkedOnlyWhenTheyRun) {
  cuda_on_host::SetExternalEvents(cuda_on_host::Mark::kWhenRun);
  Capture();
  Launch(Double, 1, 1, compute_, x_);
  ASSERT_EQ(cudaEventRecordWithFlags(event_, compute_, cudaEventRecordExternal),
            cudaSuccess);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(compute_, &graph), cudaSuccess);
  cudaGraphExec_t executable = nullptr;
  ASSERT_EQ(cudaGraphInstantiateWithFlags(&executable, graph), cudaSuccess);
  ASSERT_EQ(CopyIn(compute_), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(compute_), cudaSuccess);
  const auto replay = [&] {
    EXPECT_EQ(cudaGraphLaunch(executable, compute_), cudaSuccess);
    EXPECT_EQ(cudaEventSynchronize(event_), cudaSuccess);
    EXPECT_EQ(CopyOut(out_), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(out_), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  };
#ifdef __SANITIZE_THREAD__
  EXPECT_DEATH(replay(), "data race");
#else
  replay();
  if (GetParam() != Late::kRandom) {
    EXPECT_EQ(*to_, GetParam() == Late::kCompute ? 3 : 6);
  }
#endif
  EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  cuda_on_host::SetExternalEvents(cuda_on_host::Mark::kAtLaunch);
}

TEST_P(StreamsTest, WhatCannotBeCapturedBreaksTheCapture) {
  cudaGraph_t graph = nullptr;
  Capture();
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, 4), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaStreamEndCapture(compute_, &graph),
            cudaErrorStreamCaptureInvalidated);
  Capture();
  EXPECT_EQ(cudaStreamSynchronize(compute_), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaStreamEndCapture(compute_, &graph),
            cudaErrorStreamCaptureInvalidated);
  Capture();
  Order(compute_, out_);
  ASSERT_EQ(CopyOut(out_), cudaSuccess);
  EXPECT_EQ(cudaStreamEndCapture(compute_, &graph),
            cudaErrorStreamCaptureUnjoined);
  ASSERT_EQ(cudaEventRecord(event_, in_), cudaSuccess);
  Capture();
  EXPECT_EQ(cudaStreamWaitEvent(compute_, event_),
            cudaErrorStreamCaptureIsolation);
  EXPECT_EQ(cudaStreamEndCapture(compute_, &graph),
            cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(CopyIn(compute_), cudaSuccess) << "the streams are free again";
}

INSTANTIATE_TEST_SUITE_P(Schedules, StreamsTest,
                         ::testing::Values(Late::kNothing, Late::kCompute,
                                           Late::kCopyIn, Late::kCopyOut,
                                           Late::kRandom));

class MemoryTest : public StreamsTest {};

TEST_P(MemoryTest, FreshMemoryIsNotANumber) {
  ASSERT_EQ(CopyOut(out_), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(out_), cudaSuccess);
  EXPECT_TRUE(std::isnan(*to_));
}

TEST_P(MemoryTest, CopiesFromPageableMemoryAndBeyondTheEndAreRefused) {
  float pageable = 0;
  EXPECT_EQ(cudaMemcpyAsync(x_, &pageable, 4, cudaMemcpyDefault, in_),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyAsync(x_, from_, 8, cudaMemcpyDefault, in_),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyAsync(x_, from_, 4, cudaMemcpyDeviceToHost, in_),
            cudaErrorInvalidMemcpyDirection);
}

TEST_P(MemoryTest, FaultsComeWhereTheyAreWanted) {
  cuda_on_host::SetFaults("cudaMalloc=2@2");
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, 4), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&memory, 4), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaMalloc(&memory, 4), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
  cuda_on_host::SetFaults("");
}

TEST_P(MemoryTest, ALostDeviceStaysLost) {
  cudaGetLastError();  // of an earlier test
  cuda_on_host::SetFaults("kernel=719@2");
  Launch(Double, 1, 1, compute_, x_);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  Launch(Double, 1, 1, compute_, x_);
  EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaStreamSynchronize(compute_), cudaErrorLaunchFailure);
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, 4), cudaErrorLaunchFailure);
  cuda_on_host::SetFaults("");
  EXPECT_EQ(cudaStreamSynchronize(compute_), cudaSuccess);
}

TEST_P(MemoryTest, FreedMemoryCannotBeTouched) {
#ifdef PARASOL_SANITIZER
  GTEST_SKIP() << "the sanitizer says it in other words";
#endif
  EXPECT_DEATH(
      {
        cudaFree(x_);
        Launch(Double, 1, 1, compute_, x_);
      },
      "a thread reads");
}

INSTANTIATE_TEST_SUITE_P(Schedules, MemoryTest,
                         ::testing::Values(Late::kNothing));

TEST(ScheduleTest, IsASeedAndWhatIsLate) {
  EXPECT_EQ(cuda_on_host::ParseSchedule("").late, Late::kNothing);
  EXPECT_EQ(cuda_on_host::ParseSchedule("7").seed, 7u);
  EXPECT_EQ(cuda_on_host::ParseSchedule("7,copy-out").late, Late::kCopyOut);
  EXPECT_DEATH(cuda_on_host::ParseSchedule("7,late"), "nothing is called");
}

}  // namespace
