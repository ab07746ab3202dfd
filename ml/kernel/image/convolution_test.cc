#include "ml/kernel/image/convolution.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/device/testing/device_fixture.h"
#include "ml/kernel/testing/reference_image.h"

#if PARASOL_HAVE_CUDA
#include "ml/device/cuda_device.h"
#endif

namespace parasol {
namespace {

using ::testing::Each;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

constexpr auto kSame = WindowPadding::kSame;
constexpr auto kValid = WindowPadding::kValid;

struct Case {
  std::string name;
  ConvolutionShape shape;
};

const Case kCases[] = {
    {"one pixel",
     {1, FitWindow(1, 1, 1, kSame), FitWindow(1, 1, 1, kSame), 1, 1}},
    {"LeNet's first",
     {3, FitWindow(28, 5, 1, kSame), FitWindow(28, 5, 1, kSame), 1, 6}},
    {"LeNet's second",
     {2, FitWindow(14, 5, 1, kValid), FitWindow(14, 5, 1, kValid), 6, 16}},
    {"a residual block's",
     {2, FitWindow(8, 3, 1, kSame), FitWindow(8, 3, 1, kSame), 16, 16}},
    {"stride 2, padding only at the end",
     {2, FitWindow(8, 3, 2, kSame), FitWindow(8, 3, 2, kSame), 16, 32}},
    {"odd sizes, both axes different",
     {1, FitWindow(7, 3, 2, kSame), FitWindow(11, 2, 3, kSame), 3, 5}},
    {"1x1, stride above the window",
     {2, FitWindow(8, 1, 2, kSame), FitWindow(9, 1, 3, kSame), 16, 32}},
    {"rows that no window reaches",
     {2, FitWindow(9, 2, 4, kValid), FitWindow(10, 3, 4, kValid), 4, 7}},
    {"a window as large as the image",
     {2, FitWindow(6, 6, 1, kValid), FitWindow(5, 5, 1, kValid), 3, 17}},
    {"a window larger than the image",
     {2, FitWindow(2, 5, 1, kSame), FitWindow(3, 7, 1, kSame), 2, 3}},
    {"many channels",
     {2, FitWindow(4, 3, 1, kSame), FitWindow(4, 3, 1, kSame), 65, 33}},
    {"many pixels",
     {2, FitWindow(96, 1, 1, kSame), FitWindow(95, 1, 1, kSame), 4, 33}},
    {"many pixels, channels and filters in packs",
     {2, FitWindow(96, 1, 1, kSame), FitWindow(95, 1, 1, kSame), 36, 36}},
    {"ResNet-56's second stage",
     {2, FitWindow(16, 3, 1, kSame), FitWindow(16, 3, 1, kSame), 32, 32}},
    {"ResNet-56's third stage",
     {2, FitWindow(8, 3, 1, kSame), FitWindow(8, 3, 1, kSame), 64, 64}},
    {"some hundred pixels",
     {3, FitWindow(12, 3, 1, kSame), FitWindow(13, 3, 1, kSame), 5, 20}},
    {"channels and filters of one kernel that are no multiples of four",
     {2, FitWindow(9, 3, 2, kValid), FitWindow(9, 3, 2, kValid), 18, 18}},
};

std::vector<double> Random(int64_t size, uint32_t seed) {
  return RandomMatrix(1, size, seed).values;
}

std::vector<float> Floats(const std::vector<double>& values) {
  return std::vector<float>(values.begin(), values.end());
}

// Sums of `terms` products of values below 1, each rounded at 2^-24 of a sum
// that grows like sqrt(terms); eight times that is never reached by chance.
float Tolerance(int64_t terms) {
  return 8 * std::ldexp(1.0f, -24) * std::max<float>(terms, 4);
}

class ConvolutionTest : public DeviceTest {
 protected:
  float* PutRandom(int64_t size, uint32_t seed) {
    return Put(Floats(Random(size, seed)));
  }

  std::unique_ptr<Convolution> Make(const ConvolutionShape& shape,
                                    const Convolution::Options& options) {
    absl::StatusOr<std::unique_ptr<Convolution>> convolution =
        Convolution::Create(device(), shape, options);
    EXPECT_OK(convolution.status());
    return *std::move(convolution);
  }

  struct Arrays {
    const float *x, *w, *dy;
    float *y, *dw, *dx;
  };
  // Computes all three passes; returns y, dw and dx behind each other.
  std::vector<float> ComputeAll(Convolution& convolution,
                                const ConvolutionShape& shape,
                                const Arrays& a) {
    EXPECT_OK(convolution.Forward(a.x, a.w, nullptr, a.y));
    EXPECT_OK(convolution.VariableGradients(a.x, a.dy, a.dw, nullptr));
    EXPECT_OK(convolution.InputGradient(a.dy, a.w, a.dx));
    std::vector<float> all = Get(a.y, shape.y_size());
    for (const float value : Get(a.dw, shape.window_size() * shape.filters)) {
      all.push_back(value);
    }
    for (const float value : Get(a.dx, shape.x_size())) all.push_back(value);
    return all;
  }
};

TEST_P(ConvolutionTest, ForwardIsTheReferenceWithAndWithoutBias) {
  for (const auto& [name, shape] : kCases) {
    SCOPED_TRACE(name);
    const std::vector<double> x = Random(shape.x_size(), 1);
    const std::vector<double> w =
        Random(shape.window_size() * shape.filters, 2);
    const std::vector<double> bias = Random(shape.filters, 3);
    float* const y = PutRandom(shape.y_size(), 4);
    for (const bool has_bias : {false, true}) {
      const auto convolution = Make(shape, {.has_bias = has_bias});
      EXPECT_OK(convolution->Forward(Put(Floats(x)), Put(Floats(w)),
                                     Put(Floats(bias)), y));
      EXPECT_THAT(
          Get(y, shape.y_size()),
          Pointwise(FloatNear(Tolerance(shape.window_size())),
                    Floats(reference::Convolution(
                        shape, x, w, has_bias ? bias : reference::Values()))));
    }
  }
}

TEST_P(ConvolutionTest, ReluComesAfterTheBias) {
  for (const auto& [name, shape] : kCases) {
    SCOPED_TRACE(name);
    const std::vector<double> x = Random(shape.x_size(), 1);
    const std::vector<double> w =
        Random(shape.window_size() * shape.filters, 2);
    const std::vector<double> bias = Random(shape.filters, 3);
    float* const y = PutRandom(shape.y_size(), 4);
    const auto convolution =
        Make(shape, {.has_bias = true, .epilogue = Epilogue::kRelu});
    EXPECT_OK(convolution->Forward(Put(Floats(x)), Put(Floats(w)),
                                   Put(Floats(bias)), y));
    std::vector<double> want = reference::Convolution(shape, x, w, bias);
    for (double& value : want) value = std::max(value, 0.0);
    EXPECT_THAT(
        Get(y, shape.y_size()),
        Pointwise(FloatNear(Tolerance(shape.window_size())), Floats(want)));
  }
}

TEST_P(ConvolutionTest, ReluKeepsNan) {
  const ConvolutionShape shape = {1, FitWindow(8, 3, 1, kSame),
                                  FitWindow(8, 3, 1, kSame), 16, 16};
  std::vector<float> x(shape.x_size(), 1);
  x[0] = std::numeric_limits<float>::quiet_NaN();
  float* const y = PutRandom(shape.y_size(), 1);
  const auto convolution = Make(shape, {.epilogue = Epilogue::kRelu});
  EXPECT_OK(convolution->Forward(
      Put(x), PutRandom(shape.window_size() * shape.filters, 2), nullptr, y));
  EXPECT_TRUE(std::isnan(Get(y, shape.y_size())[0]));
}

TEST_P(ConvolutionTest, VariableGradientsAreTheReference) {
  for (const auto& [name, shape] : kCases) {
    SCOPED_TRACE(name);
    const std::vector<double> x = Random(shape.x_size(), 1);
    const std::vector<double> dy = Random(shape.y_size(), 2);
    const int64_t size = shape.window_size() * shape.filters;
    float* const dw = PutRandom(size, 3);
    float* const dbias = PutRandom(shape.filters, 4);
    const auto convolution = Make(shape, {.has_bias = true});
    EXPECT_OK(convolution->VariableGradients(Put(Floats(x)), Put(Floats(dy)),
                                             dw, dbias));
    EXPECT_THAT(
        Get(dw, size),
        Pointwise(FloatNear(Tolerance(shape.outputs())),
                  Floats(reference::ConvolutionKernelGradient(shape, x, dy))));
    std::vector<double> sums(shape.filters);
    for (size_t i = 0; i < dy.size(); ++i) sums[i % sums.size()] += dy[i];
    EXPECT_THAT(Get(dbias, shape.filters),
                Pointwise(FloatNear(Tolerance(shape.outputs())), Floats(sums)));
  }
}

TEST_P(ConvolutionTest, InputGradientIsTheReference) {
  for (const auto& [name, shape] : kCases) {
    SCOPED_TRACE(name);
    const std::vector<double> dy = Random(shape.y_size(), 1);
    const std::vector<double> w =
        Random(shape.window_size() * shape.filters, 2);
    float* const dx = PutRandom(shape.x_size(), 3);
    const auto convolution = Make(shape, {});
    EXPECT_OK(convolution->InputGradient(Put(Floats(dy)), Put(Floats(w)), dx));
    EXPECT_THAT(
        Get(dx, shape.x_size()),
        Pointwise(FloatNear(Tolerance(shape.height.window * shape.width.window *
                                      shape.filters)),
                  Floats(reference::ConvolutionInputGradient(shape, dy, w))));
  }
}

#if PARASOL_HAVE_CUDA

// Whether a shape is cuDNN's does not depend on its size here.
class DnnConvolutionTest : public ConvolutionTest {
 protected:
  void SetUp() override {
    ConvolutionTest::SetUp();
    if (IsSkipped()) return;
    const absl::Status dnn = static_cast<CudaDevice&>(device()).dnn().status();
    if (absl::IsFailedPrecondition(dnn)) GTEST_SKIP() << dnn.message();
    ASSERT_OK(dnn);
  }

  // Each factor keeps ten bits of its mantissa, or seven. Errors of many
  // factors cancel each other.
  float Tolerance(int64_t terms) const {
    const int bits = GetParam() == kCudaTf32 ? 10 : 7;
    return 8 * std::ldexp(1.0f, -bits - 1) *
           std::sqrt(std::max<float>(terms, 4));
  }
};

TEST_P(DnnConvolutionTest, AllPassesAreTheReference) {
  for (const auto& [name, shape] : kCases) {
    SCOPED_TRACE(name);
    const std::vector<double> x = Random(shape.x_size(), 1);
    const std::vector<double> w =
        Random(shape.window_size() * shape.filters, 2);
    const std::vector<double> dy = Random(shape.y_size(), 3);
    float* const dw = PutRandom(w.size(), 5);
    float* const dx = PutRandom(shape.x_size(), 6);
    ASSERT_OK_AND_ASSIGN(
        const std::unique_ptr<Convolution> convolution,
        cuda::NewConvolution(device(), shape, {}, /*least_for_dnn=*/0));
    EXPECT_OK(convolution->VariableGradients(Put(Floats(x)), Put(Floats(dy)),
                                             dw, nullptr));
    EXPECT_OK(convolution->InputGradient(Put(Floats(dy)), Put(Floats(w)), dx));
    EXPECT_THAT(
        Get(dw, w.size()),
        Pointwise(FloatNear(Tolerance(shape.outputs())),
                  Floats(reference::ConvolutionKernelGradient(shape, x, dy))));
    EXPECT_THAT(
        Get(dx, shape.x_size()),
        Pointwise(FloatNear(Tolerance(shape.height.window * shape.width.window *
                                      shape.filters)),
                  Floats(reference::ConvolutionInputGradient(shape, dy, w))));
  }
}

TEST_P(DnnConvolutionTest, BiasAndReluComeBehindCudnn) {
  const ConvolutionShape shape = {2, FitWindow(9, 3, 1, kSame),
                                  FitWindow(9, 3, 1, kSame), 4, 6};
  const std::vector<double> x = Random(shape.x_size(), 1);
  const std::vector<double> w = Random(shape.window_size() * shape.filters, 2);
  const std::vector<double> bias = Random(shape.filters, 3);
  const std::vector<double> dy = Random(shape.y_size(), 4);
  float* const y = PutRandom(shape.y_size(), 5);
  float* const dw = PutRandom(w.size(), 6);
  float* const dbias = PutRandom(shape.filters, 7);
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<Convolution> convolution,
      cuda::NewConvolution(device(), shape,
                           {.has_bias = true, .epilogue = Epilogue::kRelu},
                           /*least_for_dnn=*/0));
  EXPECT_OK(convolution->Forward(Put(Floats(x)), Put(Floats(w)),
                                 Put(Floats(bias)), y));
  EXPECT_OK(convolution->VariableGradients(Put(Floats(x)), Put(Floats(dy)), dw,
                                           dbias));
  std::vector<double> want = reference::Convolution(shape, x, w, bias);
  for (double& value : want) value = std::max(value, 0.0);
  EXPECT_THAT(
      Get(y, shape.y_size()),
      Pointwise(FloatNear(Tolerance(shape.window_size())), Floats(want)));
  std::vector<double> sums(shape.filters);
  for (size_t i = 0; i < dy.size(); ++i) sums[i % sums.size()] += dy[i];
  EXPECT_THAT(Get(dbias, shape.filters),
              Pointwise(FloatNear(1e-5), Floats(sums)));
}

// Of cuDNN's proposals the first ones may have other bits each time.
TEST_P(DnnConvolutionTest, TheSameBitsEachTime) {
  const ConvolutionShape shape = {2, FitWindow(9, 3, 2, kSame),
                                  FitWindow(8, 3, 2, kSame), 8, 16};
  const int64_t size = shape.window_size() * shape.filters;
  float* const x = PutRandom(shape.x_size(), 1);
  float* const w = PutRandom(size, 2);
  float* const dy = PutRandom(shape.y_size(), 3);
  std::vector<std::vector<float>> results;
  for (int run = 0; run < 2; ++run) {
    ASSERT_OK_AND_ASSIGN(
        const std::unique_ptr<Convolution> convolution,
        cuda::NewConvolution(device(), shape, {}, /*least_for_dnn=*/0));
    float* const y = PutRandom(shape.y_size(), 4);
    float* const dw = PutRandom(size, 5);
    float* const dx = PutRandom(shape.x_size(), 6);
    results.push_back(ComputeAll(*convolution, shape, {x, w, dy, y, dw, dx}));
  }
  EXPECT_EQ(results[0], results[1]);
}

// The gradient by the inputs may have the elements of `dy` that the gradient by
// the kernel rounded, but no others'.
TEST_P(DnnConvolutionTest, GradientsMayComeInAnyOrder) {
  const ConvolutionShape shape = {1, FitWindow(6, 3, 1, kSame),
                                  FitWindow(6, 3, 1, kSame), 8, 8};
  const int64_t size = shape.window_size() * shape.filters;
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<Convolution> convolution,
      cuda::NewConvolution(device(), shape, {}, /*least_for_dnn=*/0));
  float* const x = PutRandom(shape.x_size(), 1);
  float* const w = PutRandom(size, 2);
  float* const dy = PutRandom(shape.y_size(), 3);
  float* const other_dy = PutRandom(shape.y_size(), 4);
  float* const dw = PutRandom(size, 5);
  float* const dx = PutRandom(shape.x_size(), 6);
  EXPECT_OK(convolution->InputGradient(dy, w, dx));
  const std::vector<float> want = Get(dx, shape.x_size());
  EXPECT_OK(convolution->VariableGradients(x, dy, dw, nullptr));
  EXPECT_OK(convolution->InputGradient(dy, w, dx));
  EXPECT_EQ(Get(dx, shape.x_size()), want);
  EXPECT_OK(convolution->VariableGradients(x, other_dy, dw, nullptr));
  EXPECT_OK(convolution->InputGradient(dy, w, dx));
  EXPECT_EQ(Get(dx, shape.x_size()), want);
  EXPECT_OK(convolution->VariableGradients(x, dy, dw, nullptr));
  EXPECT_OK(convolution->Forward(x, w, nullptr, other_dy));
  EXPECT_OK(convolution->InputGradient(dy, w, dx));
  EXPECT_EQ(Get(dx, shape.x_size()), want);
}

TEST_P(DnnConvolutionTest, ArraysNeedNoAlignment) {
  const ConvolutionShape shape = {1, FitWindow(6, 3, 1, kSame),
                                  FitWindow(6, 3, 1, kSame), 4, 4};
  const std::vector<double> x = Random(shape.x_size(), 1);
  const std::vector<double> w = Random(shape.window_size() * shape.filters, 2);
  std::vector<float> shifted = Floats(x);
  shifted.insert(shifted.begin(), 0);
  float* const y = PutRandom(shape.y_size(), 4);
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<Convolution> convolution,
      cuda::NewConvolution(device(), shape, {}, /*least_for_dnn=*/0));
  EXPECT_OK(convolution->Forward(Put(shifted) + 1, Put(Floats(w)), nullptr, y));
  EXPECT_THAT(Get(y, shape.y_size()),
              Pointwise(FloatNear(Tolerance(shape.window_size())),
                        Floats(reference::Convolution(shape, x, w, {}))));
}

INSTANTIATE_TEST_SUITE_P(Devices, DnnConvolutionTest,
                         ::testing::Values(kCudaTf32, kCudaBfloat16),
                         DeviceName);

class CudaConvolutionTest : public ConvolutionTest {};

TEST_P(CudaConvolutionTest, MoreThanIntsCanCountIsRefused) {
  const WindowAxis axis = FitWindow(1 << 12, 1, 1, kSame);
  EXPECT_THAT(
      Convolution::Create(device(), {128, axis, axis, 1, 1}, {}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("128 images with 2147483648 pixels together")));
  const WindowAxis window = FitWindow(1 << 12, 1 << 12, 1, kValid);
  EXPECT_THAT(Convolution::Create(device(), {1, window, window, 1, 128}, {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("sums of 2147483648 products")));
}

// More tiles than a grid has along y.
TEST_P(CudaConvolutionTest, AKernelMayHaveMillionsOfFilters) {
  constexpr int64_t kFilters = 4'200'000;
  const WindowAxis axis = FitWindow(1, 1, 1, kValid);
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<Convolution> convolution,
      Convolution::Create(device(), {1, axis, axis, 1, kFilters}, {}));
  float* const y = Put(std::vector<float>(kFilters));
  EXPECT_OK(convolution->Forward(Put(std::vector<float>(1, 2)),
                                 Put(std::vector<float>(kFilters, 3)), nullptr,
                                 y));
  EXPECT_THAT(Get(y, kFilters), Each(6));
}

// Arrays that can't be read in packs give the same bits as those that can.
TEST_P(CudaConvolutionTest, ArraysNeedNoAlignment) {
  const ConvolutionShape shape = {2, FitWindow(12, 3, 1, kSame),
                                  FitWindow(12, 3, 1, kSame), 8, 20};
  const int64_t size = shape.window_size() * shape.filters;
  const auto convolution = Make(shape, {});
  std::vector<std::vector<float>> results;
  for (const int64_t offset : {0, 1}) {
    const auto put = [&](int64_t count, uint32_t seed) {
      std::vector<float> values = Floats(Random(count, seed));
      values.insert(values.begin(), offset, 0);
      return Put(values) + offset;
    };
    const float* const x = put(shape.x_size(), 1);
    const float* const w = put(size, 2);
    const float* const dy = put(shape.y_size(), 3);
    float* const y = put(shape.y_size(), 4);
    float* const dw = put(size, 5);
    float* const dx = put(shape.x_size(), 6);
    results.push_back(ComputeAll(*convolution, shape, {x, w, dy, y, dw, dx}));
  }
  EXPECT_EQ(results[0], results[1]);
}

INSTANTIATE_TEST_SUITE_P(Devices, CudaConvolutionTest,
                         ::testing::Values("cuda:0"), DeviceName);

#endif  // PARASOL_HAVE_CUDA

TEST(ConvolutionThreadsTest, TwoThreadsComputeWhatOneDoes) {
  const ConvolutionShape shape = {8, FitWindow(16, 3, 1, kSame),
                                  FitWindow(16, 3, 1, kSame), 16, 32};
  const std::vector<float> x = Floats(Random(shape.x_size(), 1));
  const std::vector<float> dy = Floats(Random(shape.y_size(), 2));
  const int64_t size = shape.window_size() * shape.filters;
  const std::vector<float> w = Floats(Random(size, 3));
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 2}) {
    auto device = *Device::Open("cpu", {.threads = threads});
    auto convolution = *Convolution::Create(
        *device, shape, {.has_bias = true, .epilogue = Epilogue::kRelu});
    std::vector<float> all(shape.y_size() + size + shape.filters +
                           shape.x_size());
    float* const y = all.data();
    float* const dw = y + shape.y_size();
    float* const dbias = dw + size;
    EXPECT_OK(convolution->Forward(x.data(), w.data(), dy.data(), y));
    EXPECT_OK(convolution->VariableGradients(x.data(), dy.data(), dw, dbias));
    EXPECT_OK(
        convolution->InputGradient(dy.data(), w.data(), dbias + shape.filters));
    results.push_back(std::move(all));
  }
  EXPECT_THAT(results[1],
              Pointwise(FloatNear(Tolerance(shape.outputs())), results[0]));
}

INSTANTIATE_TEST_SUITE_P(Devices, ConvolutionTest, DevicesUnderTest(),
                         DeviceName);

}  // namespace
}  // namespace parasol
