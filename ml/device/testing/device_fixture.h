#ifndef PARASOL_ML_DEVICE_TESTING_DEVICE_FIXTURE_H_
#define PARASOL_ML_DEVICE_TESTING_DEVICE_FIXTURE_H_

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "ml/device/device.h"
#include "ml/device/matrix.h"
#include "ml/device/testing/lazy_copy_device.h"
#include "ml/device/testing/recording_device.h"
#include "ml/kernel/testing/reference.h"

namespace parasol {

inline constexpr char kLazyCopies[] = "lazy copies";
inline constexpr char kRecording[] = "recording";
inline constexpr char kCudaGraphs[] = "cuda:0 with graphs";
inline constexpr char kCudaTf32[] = "cuda:0 in TF32";
inline constexpr char kCudaBfloat16[] = "cuda:0 in bfloat16";
inline constexpr char kCudaGraphsBfloat16[] = "cuda:0 in bfloat16 with graphs";

// A test that runs on the CPU, on a LazyCopyDevice, and on the first CUDA
// device if there is one; with PARASOL_REQUIRE_CUDA in the environment there
// has to be one. The suite needs
//   INSTANTIATE_TEST_SUITE_P(Devices, MyTest, DevicesUnderTest(), DeviceName);
// With RecordersUnderTest() instead, the tests run on a RecordingDevice and on
// the first CUDA device with graphs.
class DeviceTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == kLazyCopies) {
      device_ = std::make_unique<LazyCopyDevice>();
      return;
    }
    if (GetParam() == kRecording) {
      device_ = std::make_unique<RecordingDevice>();
      return;
    }
    const bool with_graphs =
        GetParam() == kCudaGraphs || GetParam() == kCudaGraphsBfloat16;
    const Precision precision = PrecisionOf(GetParam());
    const bool is_precise = precision == Precision::kFloat32;
    const std::string name = with_graphs || !is_precise ? "cuda:0" : GetParam();
    const absl::Status found = Device::CheckName(name);
    if (name != "cpu" && !found.ok()) {
      ASSERT_EQ(std::getenv("PARASOL_REQUIRE_CUDA"), nullptr) << found;
      GTEST_SKIP() << "no CUDA device here (" << found.message() << ")";
    }
    absl::StatusOr<std::unique_ptr<Device>> device = Device::Open(
        name, {.precision = precision, .cuda_graphs = with_graphs});
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *std::move(device);
  }

  Device& device() { return *device_; }

  // Returns an array on the device that holds `values`. The memory lives as
  // long as the test.
  template <typename T>
  T* Put(const std::vector<T>& values) {
    Array<T> host = *device_->NewHostArray<T>(values.size());
    Array<T> array = *device_->NewArray<T>(values.size());
    std::copy(values.begin(), values.end(), host.data());
    EXPECT_TRUE(device_
                    ->Copy(Device::Stream::kCompute,
                           absl::Span<const T>(host.span()), array.data())
                    .ok());
    EXPECT_TRUE(device_->Synchronize().ok());
    T* const data = array.data();
    arrays_.push_back(std::make_shared<Array<T>>(std::move(array)));
    return data;
  }
  MutableMatrixView Put(const reference::Matrix& m) {
    return {Put(std::vector<float>(m.values.begin(), m.values.end())), m.rows,
            m.columns};
  }

  // Returns `size` elements at `data`, as they are after all work enqueued so
  // far.
  template <typename T>
  std::vector<T> Get(const T* data, int64_t size) {
    Array<T> host = *device_->NewHostArray<T>(size);
    EXPECT_TRUE(device_
                    ->Copy(Device::Stream::kCompute,
                           absl::MakeConstSpan(data, size), host.data())
                    .ok());
    EXPECT_TRUE(device_->Synchronize().ok());
    return std::vector<T>(host.data(), host.data() + size);
  }
  std::vector<float> Get(MatrixView m) { return Get(m.data, m.size()); }

 private:
  static Precision PrecisionOf(const std::string& param) {
    if (param == kCudaTf32) return Precision::kTf32;
    return param == kCudaBfloat16 || param == kCudaGraphsBfloat16
               ? Precision::kBfloat16
               : Precision::kFloat32;
  }

  std::unique_ptr<Device> device_;
  std::vector<std::shared_ptr<void>> arrays_;
};

inline auto DevicesUnderTest() {
  return ::testing::Values("cpu", kLazyCopies, "cuda:0");
}

inline auto RecordersUnderTest() {
  return ::testing::Values(kRecording, kCudaGraphs);
}

inline std::string DeviceName(
    const ::testing::TestParamInfo<std::string>& info) {
  if (info.param == kLazyCopies) return "LazyCopies";
  if (info.param == kRecording) return "Recording";
  if (info.param == kCudaGraphs) return "CudaGraphs";
  if (info.param == kCudaTf32) return "CudaTf32";
  if (info.param == kCudaBfloat16) return "CudaBfloat16";
  if (info.param == kCudaGraphsBfloat16) return "CudaGraphsBfloat16";
  return info.param == "cpu" ? "Cpu" : "Cuda";
}

// A matrix [rows, columns] of values in [-1, 1) that float32 represents
// exactly, and that follow from the seed.
inline reference::Matrix RandomMatrix(int64_t rows, int64_t columns,
                                      uint32_t seed) {
  reference::Matrix m(rows, columns);
  uint32_t state = seed * 2654435761u + 1;
  for (double& value : m.values) {
    state = state * 1664525u + 1013904223u;
    value = (static_cast<int32_t>(state >> 16) - 32768) / 32768.0;
  }
  return m;
}

}  // namespace parasol

#endif  // PARASOL_ML_DEVICE_TESTING_DEVICE_FIXTURE_H_
