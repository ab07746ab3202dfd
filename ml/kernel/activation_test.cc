#include "ml/kernel/activation.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/device/testing/device_fixture.h"
#include "ml/kernel/testing/reference.h"

namespace parasol {
namespace {

using ::testing::Each;
using ::testing::FloatNear;
using ::testing::Pointwise;

struct Case {
  std::string name;
  ActivationFunction function;
};
const Case kFunctions[] = {{"sigmoid", ActivationFunction::kSigmoid},
                           {"tanh", ActivationFunction::kTanh},
                           {"gelu", ActivationFunction::kGelu},
                           {"softmax", ActivationFunction::kSoftmax},
                           {"leaky relu", ActivationFunction::kLeakyRelu},
                           {"silu", ActivationFunction::kSilu},
                           {"softplus", ActivationFunction::kSoftplus},
                           {"elu", ActivationFunction::kElu}};

double Scalar(ActivationFunction function, double x) {
  switch (function) {
    case ActivationFunction::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case ActivationFunction::kTanh:
      return std::tanh(x);
    case ActivationFunction::kLeakyRelu:
      return x < 0 ? .2 * x : x;
    case ActivationFunction::kSilu:
      return x / (1 + std::exp(-x));
    case ActivationFunction::kSoftplus:
      return std::log1p(std::exp(x));
    case ActivationFunction::kElu:
      return x < 0 ? std::expm1(x) : x;
    default:
      return x * std::erfc(-x / std::sqrt(2)) / 2;
  }
}

reference::Matrix Reference(ActivationFunction function,
                            const reference::Matrix& x) {
  reference::Matrix y = x;
  for (int64_t i = 0; i < x.rows; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < x.columns; ++j) sum += std::exp(x.at(i, j));
    for (int64_t j = 0; j < x.columns; ++j) {
      y.at(i, j) = function == ActivationFunction::kSoftmax
                       ? std::exp(x.at(i, j)) / sum
                       : Scalar(function, x.at(i, j));
    }
  }
  return y;
}

// Returns the gradient of Σ dy · function(x) by x, by central differences.
reference::Matrix ReferenceGradient(ActivationFunction function,
                                    const reference::Matrix& x,
                                    const reference::Matrix& dy) {
  constexpr double kStep = 1e-6;
  reference::Matrix dx(x.rows, x.columns);
  for (int64_t i = 0; i < x.rows; ++i) {
    for (int64_t j = 0; j < x.columns; ++j) {
      reference::Matrix row(1, x.columns);
      std::copy_n(&x.values[i * x.columns], x.columns, row.values.begin());
      row.at(0, j) += kStep;
      const reference::Matrix above = Reference(function, row);
      row.at(0, j) -= 2 * kStep;
      const reference::Matrix below = Reference(function, row);
      for (int64_t k = 0; k < x.columns; ++k) {
        dx.at(i, j) += dy.at(i, k) * (above.at(0, k) - below.at(0, k));
      }
      dx.at(i, j) /= 2 * kStep;
    }
  }
  return dx;
}

std::vector<float> Floats(const reference::Matrix& m) {
  return std::vector<float>(m.values.begin(), m.values.end());
}

reference::Matrix Scaled(reference::Matrix m, double scale) {
  for (double& value : m.values) value *= scale;
  return m;
}

class ActivationTest : public DeviceTest {};

TEST_P(ActivationTest, IsTheReferenceAlsoInPlace) {
  for (const Case& c : kFunctions) {
    for (int64_t columns : {1, 10, 33, 1000}) {
      SCOPED_TRACE(c.name);
      const reference::Matrix x = Scaled(RandomMatrix(3, columns, 1), 8);
      const MutableMatrixView y = Put(x);
      EXPECT_OK(Activate(device(), c.function, y, y));
      EXPECT_THAT(Get(y),
                  Pointwise(FloatNear(2e-6), Floats(Reference(c.function, x))));
    }
  }
}

TEST_P(ActivationTest, GradientIsTheReferenceAlsoInPlace) {
  for (const Case& c : kFunctions) {
    for (int64_t columns : {1, 10, 33}) {
      SCOPED_TRACE(c.name);
      const reference::Matrix x = Scaled(RandomMatrix(3, columns, 1), 4);
      const reference::Matrix dy = RandomMatrix(3, columns, 2);
      const MatrixView at =
          Put(IsGradientOfOutput(c.function) ? Reference(c.function, x) : x);
      const MutableMatrixView dx = Put(dy);
      EXPECT_OK(ActivationGradient(device(), c.function, at, dx, dx));
      EXPECT_THAT(Get(dx), Pointwise(FloatNear(2e-6), Floats(ReferenceGradient(
                                                          c.function, x, dy))));
    }
  }
}

TEST_P(ActivationTest, NanStaysNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Case& c : kFunctions) {
    SCOPED_TRACE(c.name);
    const MutableMatrixView x = {Put(std::vector<float>(40, nan)), 1, 40};
    EXPECT_OK(Activate(device(), c.function, x, x));
    EXPECT_TRUE(std::isnan(Get(x)[0]));
  }
}

TEST_P(ActivationTest, SoftmaxOfLargeNumbersDoesNotOverflow) {
  const MutableMatrixView x = {Put(std::vector<float>(20, 1e30f)), 1, 20};
  EXPECT_OK(Activate(device(), ActivationFunction::kSoftmax, x, x));
  EXPECT_THAT(Get(x), Each(::testing::FloatNear(0.05f, 1e-7f)));
}

// No x overflows, and the far sides keep their digits: e^-20 is not lost beside
// 1.
TEST_P(ActivationTest, FarFromZeroTheDigitsAreKept) {
  const std::vector<float> far = {1e30f, -1e30f, 100, -100, 20, -20};
  const struct {
    ActivationFunction function;
    std::vector<float> want;
    std::vector<float> gradient;
  } cases[] = {
      {ActivationFunction::kSilu,
       {1e30f, 0, 100, 0, 20, -4.1223072e-08f},
       {1, 0, 1, 0, 1, -3.9161918e-08f}},
      {ActivationFunction::kSoftplus,
       {1e30f, 0, 100, 0, 20, 2.0611537e-09f},
       {1, 0, 1, 0, 1, 2.0611537e-09f}},
      {ActivationFunction::kElu,
       {1e30f, -1, 100, -1, 20, -1},
       {1, 0, 1, 0, 1, 0}},
  };
  const int64_t size = static_cast<int64_t>(far.size());
  for (const auto& c : cases) {
    const MutableMatrixView x = {Put(far), 1, size};
    const MutableMatrixView y = {Put(far), 1, size};
    EXPECT_OK(Activate(device(), c.function, x, y));
    for (int64_t i = 0; i < size; ++i) {
      EXPECT_NEAR(Get(y)[i], c.want[i], 1e-6 * std::abs(c.want[i]) + 1e-30);
    }
    const MutableMatrixView dx = {Put(std::vector<float>(size, 1)), 1, size};
    EXPECT_OK(ActivationGradient(
        device(), c.function, IsGradientOfOutput(c.function) ? y : x, dx, dx));
    for (int64_t i = 0; i < size; ++i) {
      EXPECT_NEAR(Get(dx)[i], c.gradient[i],
                  1e-6 * std::abs(c.gradient[i]) + 1e-30);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, ActivationTest, DevicesUnderTest(),
                         DeviceName);

}  // namespace
}  // namespace parasol
