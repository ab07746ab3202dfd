// Operations on images of bfloat16 compute in float32 and round what they
// write: they give what the same images in float32 would, rounded. Only on CUDA
// devices.

#include "ml/device/testing/bfloat16.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/device/testing/device_fixture.h"
#include "ml/kernel/image/convolution.h"
#include "ml/kernel/image/pad.h"
#include "ml/kernel/image/pooling.h"

#if PARASOL_HAVE_CUDA

#include "ml/device/cuda_device.h"

namespace parasol {
namespace {

constexpr auto kSame = WindowPadding::kSame;
constexpr auto kValid = WindowPadding::kValid;

struct Case {
  std::string name;
  ConvolutionShape shape;
};

// Each size of tile, with and without packs, and gradients in slices.
const Case kCases[] = {
    {"one pixel",
     {1, FitWindow(1, 1, 1, kSame), FitWindow(1, 1, 1, kSame), 1, 1}},
    {"few filters",
     {2, FitWindow(8, 3, 1, kSame), FitWindow(8, 3, 1, kSame), 16, 16}},
    {"stride 2, no packs",
     {2, FitWindow(9, 3, 2, kSame), FitWindow(11, 2, 3, kSame), 3, 5}},
    {"packs on one side",
     {2, FitWindow(8, 3, 2, kSame), FitWindow(8, 3, 2, kSame), 8, 33}},
    {"many pixels",
     {2, FitWindow(96, 1, 1, kSame), FitWindow(95, 1, 1, kSame), 36, 36}},
    {"many channels",
     {2, FitWindow(8, 3, 1, kSame), FitWindow(8, 3, 1, kSame), 64, 64}},
};

class ImagesInBfloat16Test : public DeviceTest {
 protected:
  template <typename T>
  T* PutAs(const std::vector<float>& values) {
    if constexpr (std::is_same_v<T, Bfloat16>) {
      return Put(ToBfloat16(values));
    } else {
      return Put(values);
    }
  }
  std::vector<float> Floats(const Bfloat16* data, int64_t size) {
    return ToFloats(Get(data, size));
  }
  std::vector<float> Floats(const float* data, int64_t size) {
    return Get(data, size);
  }

  // Results of a convolution's passes, as floats.
  struct Results {
    std::vector<float> y, dkernel, dbias, dx;
  };
  template <typename T>
  Results Compute(Convolution& convolution, const ConvolutionShape& s) {
    const int64_t size = s.window_size() * s.filters;
    T* const x = PutAs<T>(RandomBfloat16s(s.x_size(), 1));
    T* const dy = PutAs<T>(RandomBfloat16s(s.y_size(), 2));
    float* const kernel = Put(RandomBfloat16s(size, 3));
    float* const bias = Put(RandomBfloat16s(s.filters, 4));
    T* const y = PutAs<T>(std::vector<float>(s.y_size(), 7));
    T* const dx = PutAs<T>(std::vector<float>(s.x_size(), 7));
    float* const dkernel = Put(std::vector<float>(size, 7));
    float* const dbias = Put(std::vector<float>(s.filters, 7));
    EXPECT_OK(convolution.Forward(x, kernel, bias, y));
    EXPECT_OK(convolution.VariableGradients(x, dy, dkernel, dbias));
    EXPECT_OK(convolution.InputGradient(dy, kernel, dx));
    return {Floats(y, s.y_size()), Get(dkernel, size), Get(dbias, s.filters),
            Floats(dx, s.x_size())};
  }
};

TEST_P(ImagesInBfloat16Test, AConvolutionIsThatOfFloatsRounded) {
  for (const auto& [name, shape] : kCases) {
    for (const Epilogue epilogue : {Epilogue::kNone, Epilogue::kRelu}) {
      SCOPED_TRACE(name);
      ASSERT_OK_AND_ASSIGN(
          const std::unique_ptr<Convolution> convolution,
          Convolution::Create(device(), shape,
                              {.has_bias = true, .epilogue = epilogue}));
      const Results want = Compute<float>(*convolution, shape);
      const Results got = Compute<Bfloat16>(*convolution, shape);
      EXPECT_EQ(got.y, Rounded(want.y));
      EXPECT_EQ(got.dkernel, want.dkernel);
      EXPECT_EQ(got.dbias, want.dbias);
      EXPECT_EQ(got.dx, Rounded(want.dx));
    }
  }
}

TEST_P(ImagesInBfloat16Test, PoolingIsThatOfFloatsRounded) {
  using Kind = PoolingShape::Kind;
  const PoolingShape shapes[] = {
      {Kind::kMax, 2, FitWindow(9, 3, 2, kSame), FitWindow(8, 3, 2, kSame), 5},
      {Kind::kMax, 2, FitWindow(8, 2, 2, kValid), FitWindow(8, 2, 2, kValid),
       4},
      {Kind::kAverage, 2, FitWindow(5, 3, 1, kSame), FitWindow(7, 2, 1, kSame),
       3},
      {Kind::kAverage, 3, FitWindow(7, 7, 1, kValid),
       FitWindow(7, 7, 1, kValid), 64}};
  for (const PoolingShape& s : shapes) {
    SCOPED_TRACE(s.y_size());
    const std::vector<float> x = RandomBfloat16s(s.x_size(), 1);
    const std::vector<float> dy = RandomBfloat16s(s.y_size(), 2);
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Pooling> pooling,
                         Pooling::Create(device(), s));
    float* const want_y = Put(dy);
    float* const want_dx = Put(x);
    EXPECT_OK(pooling->Forward(Put(x), want_y));
    EXPECT_OK(pooling->InputGradient(Put(x), want_y, Put(dy), want_dx));
    Bfloat16* const y = Put(ToBfloat16(dy));
    Bfloat16* const dx = Put(ToBfloat16(x));
    EXPECT_OK(pooling->Forward(Put(ToBfloat16(x)), y));
    EXPECT_OK(
        pooling->InputGradient(Put(ToBfloat16(x)), y, Put(ToBfloat16(dy)), dx));
    EXPECT_EQ(Floats(y, s.y_size()), Rounded(Get(want_y, s.y_size())));
    EXPECT_EQ(Floats(dx, s.x_size()), Rounded(Get(want_dx, s.x_size())));
  }
}

TEST_P(ImagesInBfloat16Test, PaddingIsACopy) {
  const PadShape shape = {2, {2, 2}, {1, 0}, {0, 1}};
  Bfloat16* const y = Put(ToBfloat16(std::vector<float>(9, 7)));
  EXPECT_OK(
      Pad(device(), shape, Put(ToBfloat16(std::vector<float>{1, 2, 3, 4})), y));
  EXPECT_EQ(Floats(y, 9), (std::vector<float>{0, 0, 0, 1, 2, 0, 3, 4, 0}));
  Bfloat16* const dx = Put(ToBfloat16(std::vector<float>(4, 7)));
  EXPECT_OK(PadGradient(
      device(), shape,
      Put(ToBfloat16(std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9})), dx));
  EXPECT_EQ(Floats(dx, 4), (std::vector<float>{4, 5, 7, 8}));
}

INSTANTIATE_TEST_SUITE_P(Devices, ImagesInBfloat16Test,
                         ::testing::Values("cuda:0"), DeviceName);

// Whether a shape is cuDNN's does not depend on its size here.
class DnnInBfloat16Test : public ImagesInBfloat16Test {
 protected:
  void SetUp() override {
    ImagesInBfloat16Test::SetUp();
    if (IsSkipped()) return;
    const absl::Status dnn = static_cast<CudaDevice&>(device()).dnn().status();
    if (absl::IsFailedPrecondition(dnn)) GTEST_SKIP() << dnn.message();
    ASSERT_OK(dnn);
  }
};

// cuDNN rounds what it computes in both cases.
TEST_P(DnnInBfloat16Test, AConvolutionNeedsNoConversion) {
  for (const auto& [name, shape] : kCases) {
    SCOPED_TRACE(name);
    ASSERT_OK_AND_ASSIGN(
        const std::unique_ptr<Convolution> convolution,
        cuda::NewConvolution(device(), shape, {}, /*least_for_dnn=*/0));
    const Results want = Compute<float>(*convolution, shape);
    const Results got = Compute<Bfloat16>(*convolution, shape);
    EXPECT_EQ(got.y, want.y);
    EXPECT_EQ(got.dkernel, want.dkernel);
    EXPECT_EQ(got.dx, want.dx);
  }
}

TEST_P(DnnInBfloat16Test, BiasAndReluComeBehindCudnn) {
  const ConvolutionShape shape = {2, FitWindow(9, 3, 1, kSame),
                                  FitWindow(9, 3, 1, kSame), 4, 6};
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<Convolution> convolution,
      cuda::NewConvolution(device(), shape,
                           {.has_bias = true, .epilogue = Epilogue::kRelu},
                           /*least_for_dnn=*/0));
  const Results want = Compute<float>(*convolution, shape);
  const Results got = Compute<Bfloat16>(*convolution, shape);
  EXPECT_EQ(got.y, Rounded(want.y));
  EXPECT_EQ(got.dbias, want.dbias);
}

// The project's kernels read arrays that cuDNN does not.
TEST_P(DnnInBfloat16Test, ArraysNeedNoAlignment) {
  const ConvolutionShape shape = {1, FitWindow(6, 3, 1, kSame),
                                  FitWindow(6, 3, 1, kSame), 4, 4};
  std::vector<float> x = RandomBfloat16s(shape.x_size(), 1);
  float* const kernel =
      Put(RandomBfloat16s(shape.window_size() * shape.filters, 2));
  Bfloat16* const want = Put(std::vector<Bfloat16>(shape.y_size()));
  Bfloat16* const y = Put(std::vector<Bfloat16>(shape.y_size()));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Convolution> by_windows,
                       Convolution::Create(device(), shape, {}));
  EXPECT_OK(by_windows->Forward(Put(ToBfloat16(x)), kernel, nullptr, want));
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<Convolution> convolution,
      cuda::NewConvolution(device(), shape, {}, /*least_for_dnn=*/0));
  x.insert(x.begin(), 0);
  EXPECT_OK(convolution->Forward(Put(ToBfloat16(x)) + 1, kernel, nullptr, y));
  EXPECT_EQ(Floats(y, shape.y_size()), Floats(want, shape.y_size()));
}

INSTANTIATE_TEST_SUITE_P(Devices, DnnInBfloat16Test,
                         ::testing::Values(kCudaBfloat16), DeviceName);

// cuDNN reads float32 alone in TF32.
class Bfloat16OnAnotherDeviceTest : public DnnInBfloat16Test {};

TEST_P(Bfloat16OnAnotherDeviceTest, IsComputedWithoutCudnn) {
  const ConvolutionShape shape = {2, FitWindow(9, 3, 1, kSame),
                                  FitWindow(9, 3, 1, kSame), 4, 8};
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Convolution> by_windows,
                       Convolution::Create(device(), shape, {}));
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<Convolution> convolution,
      cuda::NewConvolution(device(), shape, {}, /*least_for_dnn=*/0));
  const Results want = Compute<Bfloat16>(*by_windows, shape);
  const Results got = Compute<Bfloat16>(*convolution, shape);
  EXPECT_EQ(got.y, want.y);
  EXPECT_EQ(got.dkernel, want.dkernel);
  EXPECT_EQ(got.dx, want.dx);
}

INSTANTIATE_TEST_SUITE_P(Devices, Bfloat16OnAnotherDeviceTest,
                         ::testing::Values(kCudaTf32), DeviceName);

}  // namespace
}  // namespace parasol

#endif  // PARASOL_HAVE_CUDA
