#include "ml/kernel/affine.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/device/testing/device_fixture.h"
#include "ml/kernel/testing/reference.h"

namespace parasol {
namespace {

using ::testing::FloatNear;
using ::testing::Pointwise;

// Shapes around vector widths and cuBLAS's tiles, down to single elements; rows
// that CUDA divides among blocks to add them up.
struct Shape {
  int64_t m, k, n;
};
constexpr Shape kShapes[] = {{1, 1, 1},      {1, 7, 3},    {5, 1, 9},
                             {3, 17, 1},     {33, 31, 29}, {64, 64, 64},
                             {128, 100, 10}, {2, 784, 65}, {40000, 1, 1},
                             {2500, 3, 33},  {517, 100, 1}};

std::string Describe(const Shape& shape) {
  return absl::StrCat("m=", shape.m, " k=", shape.k, " n=", shape.n);
}

// Sums of `terms` products of values below 1, each rounded at 2^-24 of a sum
// that grows like sqrt(terms); eight times that is never reached by chance.
float Tolerance(int64_t terms) {
  return 8 * std::ldexp(1.0f, -24) * std::max<float>(terms, 4);
}

std::vector<float> Floats(const reference::Matrix& m) {
  return std::vector<float>(m.values.begin(), m.values.end());
}

class AffineTest : public DeviceTest {};

TEST_P(AffineTest, ForwardIsTheReference) {
  for (const Shape& s : kShapes) {
    SCOPED_TRACE(Describe(s));
    const reference::Matrix x = RandomMatrix(s.m, s.k, 1);
    const reference::Matrix w = RandomMatrix(s.k, s.n, 2);
    const reference::Matrix bias = RandomMatrix(1, s.n, 3);
    const MutableMatrixView y = Put(RandomMatrix(s.m, s.n, 4));

    EXPECT_OK(
        Affine(device(), Put(x), Put(w), Put(bias).data, Epilogue::kNone, y));
    EXPECT_THAT(Get(y),
                Pointwise(FloatNear(Tolerance(s.k)),
                          Floats(reference::Affine(x, w, bias.values))));
    EXPECT_OK(Affine(device(), Put(x), Put(w), nullptr, Epilogue::kNone, y));
    EXPECT_THAT(Get(y), Pointwise(FloatNear(Tolerance(s.k)),
                                  Floats(reference::Affine(x, w, {}))));
  }
}

TEST_P(AffineTest, ForwardWithReluIsTheReferenceClampedAtZero) {
  for (const Shape& s : kShapes) {
    SCOPED_TRACE(Describe(s));
    const reference::Matrix x = RandomMatrix(s.m, s.k, 1);
    const reference::Matrix w = RandomMatrix(s.k, s.n, 2);
    const reference::Matrix bias = RandomMatrix(1, s.n, 3);
    const MutableMatrixView y = Put(RandomMatrix(s.m, s.n, 4));

    EXPECT_OK(
        Affine(device(), Put(x), Put(w), Put(bias).data, Epilogue::kRelu, y));
    EXPECT_THAT(Get(y), Pointwise(FloatNear(Tolerance(s.k)),
                                  Floats(reference::Relu(
                                      reference::Affine(x, w, bias.values)))));
    EXPECT_OK(Affine(device(), Put(x), Put(w), nullptr, Epilogue::kRelu, y));
    EXPECT_THAT(
        Get(y),
        Pointwise(FloatNear(Tolerance(s.k)),
                  Floats(reference::Relu(reference::Affine(x, w, {})))));
  }
}

TEST_P(AffineTest, ReluKeepsNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const MatrixView x = {Put(std::vector<float>{nan}), 1, 1};
  const MatrixView w = {Put(std::vector<float>{1.0f}), 1, 1};
  const MutableMatrixView y = Put(RandomMatrix(1, 1, 1));
  EXPECT_OK(Affine(device(), x, w, nullptr, Epilogue::kRelu, y));
  EXPECT_TRUE(std::isnan(Get(y)[0]));
}

TEST_P(AffineTest, InputGradientIsTheReference) {
  for (const Shape& s : kShapes) {
    SCOPED_TRACE(Describe(s));
    const reference::Matrix dy = RandomMatrix(s.m, s.n, 1);
    const reference::Matrix w = RandomMatrix(s.k, s.n, 2);
    const MutableMatrixView dx = Put(RandomMatrix(s.m, s.k, 3));

    EXPECT_OK(AffineInputGradient(device(), Put(dy), Put(w), dx));
    EXPECT_THAT(
        Get(dx),
        Pointwise(FloatNear(Tolerance(s.n)),
                  Floats(reference::Product(dy, reference::Transposed(w)))));
  }
}

TEST_P(AffineTest, VariableGradientsAreTheReference) {
  for (const Shape& s : kShapes) {
    SCOPED_TRACE(Describe(s));
    const reference::Matrix x = RandomMatrix(s.m, s.k, 1);
    const reference::Matrix dy = RandomMatrix(s.m, s.n, 2);
    const MutableMatrixView dw = Put(RandomMatrix(s.k, s.n, 3));
    const MutableMatrixView dbias = Put(RandomMatrix(1, s.n, 4));

    EXPECT_OK(
        AffineVariableGradients(device(), Put(x), Put(dy), dw, dbias.data));
    EXPECT_THAT(
        Get(dw),
        Pointwise(FloatNear(Tolerance(s.m)),
                  Floats(reference::Product(reference::Transposed(x), dy))));
    const std::vector<double> sum = reference::SumOfRows(dy);
    EXPECT_THAT(Get(dbias),
                Pointwise(FloatNear(Tolerance(s.m)),
                          std::vector<float>(sum.begin(), sum.end())));
    EXPECT_OK(AffineVariableGradients(device(), Put(x), Put(dy), dw, nullptr));
  }
}

// x · w as a CUDA device of that precision computes it; nothing where there is
// no CUDA device.
absl::StatusOr<std::vector<float>> Product(Precision precision,
                                           const reference::Matrix& x,
                                           const reference::Matrix& w) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Device> device,
                   Device::Open("cuda:0", {.precision = precision}));
  const auto put = [&device](const reference::Matrix& m) {
    Array<float> host = *device->NewHostArray<float>(m.values.size());
    std::copy(m.values.begin(), m.values.end(), host.data());
    Array<float> array = *device->NewArray<float>(m.values.size());
    EXPECT_OK(device->Copy(Device::Stream::kCompute,
                           absl::Span<const float>(host.span()), array.data()));
    EXPECT_OK(device->Synchronize());
    return array;
  };
  const Array<float> a = put(x);
  const Array<float> b = put(w);
  const Array<float> c = put(reference::Matrix(x.rows, w.columns));
  RETURN_IF_ERROR(Affine(*device, {a.data(), x.rows, x.columns},
                         {b.data(), w.rows, w.columns}, nullptr,
                         Epilogue::kNone, {c.data(), x.rows, w.columns}));
  const Array<float> y = *device->NewHostArray<float>(c.size());
  RETURN_IF_ERROR(device->Copy(Device::Stream::kCompute,
                               absl::Span<const float>(c.span()), y.data()));
  RETURN_IF_ERROR(device->Synchronize());
  return std::vector<float>(y.data(), y.data() + y.size());
}

// Rounds to `bits` bits of significand, to nearest, ties to even.
reference::Matrix RoundedTo(int bits, reference::Matrix m) {
  for (double& value : m.values) {
    int exponent = 0;
    const double fraction = std::frexp(value, &exponent);
    value =
        std::ldexp(std::nearbyint(std::ldexp(fraction, bits)), exponent - bits);
  }
  return m;
}

TEST(AffinePrecisionTest, Bfloat16RoundsTheFactorsAndAddsInFloat32) {
  const absl::Status found = Device::CheckName("cuda:0");
  if (!found.ok()) GTEST_SKIP() << found;
  const reference::Matrix x = RandomMatrix(33, 100, 1);
  const reference::Matrix w = RandomMatrix(100, 29, 2);
  const absl::StatusOr<std::vector<float>> y =
      Product(Precision::kBfloat16, x, w);
  ASSERT_OK(y.status());
  EXPECT_THAT(
      *y,
      Pointwise(FloatNear(Tolerance(100)),
                Floats(reference::Product(RoundedTo(8, x), RoundedTo(8, w)))));
}

// Each factor is off by 2^-11 of itself at most, a sum by as much of 100
// products twice; values are below 1.
TEST(AffinePrecisionTest, Tf32KeepsTenBitsOfTheFactors) {
  const absl::Status found = Device::CheckName("cuda:0");
  if (!found.ok()) GTEST_SKIP() << found;
  const reference::Matrix x = RandomMatrix(33, 100, 1);
  const reference::Matrix w = RandomMatrix(100, 29, 2);
  const absl::StatusOr<std::vector<float>> y = Product(Precision::kTf32, x, w);
  ASSERT_OK(y.status());
  EXPECT_THAT(*y, Pointwise(FloatNear(100 * std::ldexp(1.0f, -10)),
                            Floats(reference::Product(x, w))));
}

INSTANTIATE_TEST_SUITE_P(Devices, AffineTest, DevicesUnderTest(), DeviceName);

}  // namespace
}  // namespace parasol
