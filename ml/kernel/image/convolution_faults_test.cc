// What becomes of cuDNN's refusals, which third_party/cuda_on_host makes, and
// of CUDA's limits, which it keeps. All shapes are cuDNN's here. Only with
// --config=cuda_host.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/device/testing/device_fixture.h"
#include "ml/kernel/image/convolution.h"
#include "third_party/cuda_on_host/settings.h"

namespace parasol {
namespace {

using ::testing::ContainsRegex;
using ::testing::Each;

class ConvolutionFaultsTest : public DeviceTest {
 protected:
  void TearDown() override { cuda_on_host::SetFaults(""); }

  // A fault of all that cuDNN computes: what comes out was computed without it.
  static constexpr char kUnused[] = "cudnnBackendExecute=5000";

  // Computes a convolution of ones, whose results are all 1. No two have one
  // shape, of which the device would know what cuDNN said first.
  absl::StatusOr<std::vector<float>> Compute() {
    const int64_t size = ++size_;
    const WindowAxis axis = FitWindow(size, 1, 1, WindowPadding::kValid);
    ASSIGN_OR_RETURN(const std::unique_ptr<Convolution> convolution,
                     cuda::NewConvolution(device(), {1, axis, axis, 1, 1}, {},
                                          /*least_for_dnn=*/0));
    float* const x = Put(std::vector<float>(size * size, 1));
    float* const kernel = Put(std::vector<float>(1, 1));
    float* const y = Put(std::vector<float>(size * size));
    RETURN_IF_ERROR(convolution->Forward(x, kernel, nullptr, y));
    return Get(y, size * size);
  }

 private:
  int64_t size_ = 0;
};

// Without cuDNN a convolution is computed in float32. Each of the three passes'
// plans may be refused, for reasons that cuDNN 9 tells apart: as a graph, and
// by all that the heuristics propose.
TEST_P(ConvolutionFaultsTest, WhatCudnnDoesNotSupportIsComputedWithoutIt) {
  // Every call, or one: an array, an operation and the heuristics of the first
  // pass, its last proposal, and the same of the others.
  for (const char* call : {"", "@1", "@5", "@7", "@10", "@11", "@21", "@30"}) {
    for (const int status : {2000, 2008, 3000, 3002, 3004, 3014}) {
      const std::string fault =
          absl::StrCat("cudnnBackendFinalize=", status, call);
      SCOPED_TRACE(fault);
      cuda_on_host::SetFaults(absl::StrCat(fault, ",", kUnused));
      ASSERT_OK_AND_ASSIGN(const std::vector<float> y, Compute());
      EXPECT_THAT(y, Each(1));
    }
  }
}

TEST_P(ConvolutionFaultsTest, CudnnThatIsNotWholeIsAsNone) {
  testing::internal::CaptureStderr();
  for (const char* fault : {"libcudnn.so.9=1", "cudnnCreate=1001",
                            "cudnnCreate=1002", "cudnnCreate=1008"}) {
    SCOPED_TRACE(fault);
    cuda_on_host::SetFaults(absl::StrCat(fault, ",", kUnused));
    ASSERT_OK_AND_ASSIGN(const std::vector<float> y, Compute());
    EXPECT_THAT(y, Each(1));
  }
  EXPECT_THAT(
      testing::internal::GetCapturedStderr(),
      ContainsRegex("^W[^\n]* without cuDNN, [^\n]*libcudnn.so.9[^\n]*\n$"))
      << "one line in all";
}

TEST_P(ConvolutionFaultsTest, AFullDeviceAndALostOneAreToldApart) {
  // The first fault comes before cuDNN is open.
  for (const char* fault : {"cudnnCreate=4000", "cudnnBackendFinalize=4000",
                            "cudnnBackendExecute=5000", "kernel=700"}) {
    SCOPED_TRACE(fault);
    cuda_on_host::SetFaults(fault);
    EXPECT_THAT(Compute(), StatusIs(absl::StatusCode::kUnavailable));
  }
  for (const int status : {4003, 4004}) {
    cuda_on_host::SetFaults(absl::StrCat("cudnnBackendFinalize=", status));
    EXPECT_THAT(Compute(), StatusIs(absl::StatusCode::kResourceExhausted));
  }
}

// Its kernel is transposed by more blocks than CUDA allows along y or z.
TEST_P(ConvolutionFaultsTest, AFilterMayHaveMillionsOfWeights) {
  constexpr int64_t kChannels = 2'100'000;
  const WindowAxis axis = FitWindow(1, 1, 1, WindowPadding::kValid);
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<Convolution> convolution,
      cuda::NewConvolution(device(), {1, axis, axis, kChannels, 1}, {},
                           /*least_for_dnn=*/0));
  float* const x = Put(std::vector<float>(kChannels, 1));
  float* const kernel = Put(std::vector<float>(kChannels, 1));
  float* const y = Put(std::vector<float>(1));
  EXPECT_OK(convolution->Forward(x, kernel, nullptr, y));
  EXPECT_THAT(Get(y, 1), Each(kChannels));
}

INSTANTIATE_TEST_SUITE_P(Devices, ConvolutionFaultsTest,
                         ::testing::Values(kCudaTf32), DeviceName);

}  // namespace
}  // namespace parasol
