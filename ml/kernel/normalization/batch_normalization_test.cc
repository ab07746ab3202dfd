#include "ml/kernel/normalization/batch_normalization.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/device/testing/bfloat16.h"
#include "ml/device/testing/device_fixture.h"
#include "ml/kernel/add.h"
#include "ml/kernel/relu.h"
#include "ml/kernel/testing/reference_image.h"

namespace parasol {
namespace {

using reference::Values;
using ::testing::Each;
using ::testing::FloatNear;
using ::testing::Pointwise;

using Shape = BatchNormalization::Shape;

constexpr double kEpsilon = 1e-3;
// Sums are rounded at 2^-24 of terms of about 1, in blocks whose sums are
// exact enough to be added up in double (the CPU) or by some hundred threads
// (CUDA), then multiplied by 1 / sqrt(variance), at most 30.
constexpr float kTolerance = 2e-5;

// Single rows and channels, sizes around the widened rows of the CPU, and rows
// that CUDA divides among blocks.
constexpr Shape kShapes[] = {{1, 1},   {1, 5},    {2, 300}, {7, 3},
                             {85, 3},  {86, 3},   {64, 16}, {500, 16},
                             {33, 64}, {2000, 6}, {5, 257}, {3001, 40}};

Values Random(int64_t size, uint32_t seed) {
  return RandomMatrix(1, size, seed).values;
}

std::vector<float> Floats(const Values& values) {
  return std::vector<float>(values.begin(), values.end());
}

struct Arguments {
  explicit Arguments(const Shape& shape)
      : x(Random(shape.size(), 1)),
        gamma(Random(shape.channels, 2)),
        beta(Random(shape.channels, 3)),
        dy(Random(shape.size(), 4)) {}

  Values Output(const Shape& shape, Epilogue epilogue) const {
    Values y = reference::BatchNormalization(
        x, reference::MomentsOf(x, shape.channels), gamma, beta, kEpsilon);
    if (epilogue == Epilogue::kRelu) {
      for (double& value : y) value = std::max(value, 0.0);
    }
    return y;
  }

  // d(Σ dy · y) / d(each of `values`, which is one of the members), by central
  // differences.
  Values Gradient(const Shape& shape, Epilogue epilogue,
                  Values Arguments::*member) const {
    constexpr double kStep = 1e-5;
    const auto value = [&](size_t i, double step) {
      Arguments moved = *this;
      (moved.*member)[i] += step;
      const Values y = moved.Output(shape, epilogue);
      double sum = 0;
      for (size_t j = 0; j < y.size(); ++j) sum += dy[j] * y[j];
      return sum;
    };
    Values gradient((this->*member).size());
    for (size_t i = 0; i < gradient.size(); ++i) {
      gradient[i] = (value(i, kStep) - value(i, -kStep)) / (2 * kStep);
    }
    return gradient;
  }

  Values x, gamma, beta, dy;
};

class BatchNormalizationTest : public DeviceTest {
 protected:
  std::unique_ptr<BatchNormalization> Make(
      const Shape& shape, Epilogue epilogue = Epilogue::kNone) {
    absl::StatusOr<std::unique_ptr<BatchNormalization>> made =
        BatchNormalization::Create(device(), shape,
                                   {.epsilon = kEpsilon, .epilogue = epilogue});
    EXPECT_OK(made.status());
    return *std::move(made);
  }
  std::unique_ptr<BatchNormalization> MakeSum(const Shape& shape,
                                              Epilogue epilogue) {
    absl::StatusOr<std::unique_ptr<BatchNormalization>> made =
        BatchNormalization::Create(
            device(), shape,
            {.epsilon = kEpsilon, .epilogue = epilogue, .has_term = true});
    EXPECT_OK(made.status());
    return *std::move(made);
  }
  float* NewOutput(int64_t size) { return Put(std::vector<float>(size, 7)); }
};

TEST_P(BatchNormalizationTest, TrainingUsesTheBatchsMoments) {
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(absl::StrCat(shape.rows, "x", shape.channels));
    const Arguments a(shape);
    float* const y = NewOutput(shape.size());
    for (const Epilogue epilogue : {Epilogue::kNone, Epilogue::kRelu}) {
      EXPECT_OK(Make(shape, epilogue)
                    ->ForwardTraining(Put(Floats(a.x)), Put(Floats(a.gamma)),
                                      Put(Floats(a.beta)), y));
      EXPECT_THAT(
          Get(y, shape.size()),
          Pointwise(FloatNear(kTolerance), Floats(a.Output(shape, epilogue))));
    }
  }
}

TEST_P(BatchNormalizationTest, EvaluationUsesTheMovingMoments) {
  const Shape shape = {33, 6};
  const Arguments a(shape);
  const Values mean = Random(shape.channels, 5);
  Values variance = Random(shape.channels, 6);
  for (double& value : variance) value = 1.5 + value;
  float* const y = NewOutput(shape.size());
  EXPECT_OK(Make(shape)->ForwardEvaluation(
      Put(Floats(a.x)), Put(Floats(a.gamma)), Put(Floats(a.beta)),
      {Put(Floats(mean)), Put(Floats(variance))}, y));
  EXPECT_THAT(
      Get(y, shape.size()),
      Pointwise(FloatNear(kTolerance),
                Floats(reference::BatchNormalization(
                    a.x, {mean, variance}, a.gamma, a.beta, kEpsilon))));
}

TEST_P(BatchNormalizationTest, AMovingVarianceBelowZeroIsZeroAndNanStaysNan) {
  const float scale = 1 / std::sqrt(kEpsilon);
  float* const y = NewOutput(3);
  EXPECT_OK(Make({1, 3})->ForwardEvaluation(
      Put<float>({1, 2, 3}), nullptr, nullptr,
      {Put<float>({0, 0, 0}),
       Put<float>({-1, 0, std::numeric_limits<float>::quiet_NaN()})},
      y));
  const std::vector<float> values = Get(y, 3);
  EXPECT_FLOAT_EQ(values[0], scale);
  EXPECT_FLOAT_EQ(values[1], 2 * scale);
  EXPECT_TRUE(std::isnan(values[2]));
}

TEST_P(BatchNormalizationTest, NoGammaIsOnesAndNoBetaZeros) {
  const Shape shape = {33, 6};
  const Arguments a(shape);
  float* const y = NewOutput(shape.size());
  EXPECT_OK(
      Make(shape)->ForwardTraining(Put(Floats(a.x)), nullptr, nullptr, y));
  EXPECT_THAT(Get(y, shape.size()),
              Pointwise(FloatNear(kTolerance),
                        Floats(reference::BatchNormalization(
                            a.x, reference::MomentsOf(a.x, shape.channels), {},
                            {}, kEpsilon))));
}

TEST_P(BatchNormalizationTest, GradientsAreThoseOfTheReference) {
  // The larger shapes take long by differences, and add only rows.
  for (const Shape& shape :
       {Shape{1, 5}, Shape{2, 4}, Shape{7, 3}, Shape{86, 3}, Shape{20, 16}}) {
    SCOPED_TRACE(absl::StrCat(shape.rows, "x", shape.channels));
    const Arguments a(shape);
    float* const x = Put(Floats(a.x));
    float* const dy = Put(Floats(a.dy));
    for (const Epilogue epilogue : {Epilogue::kNone, Epilogue::kRelu}) {
      float* const dx = NewOutput(shape.size());
      float* const dgamma = NewOutput(shape.channels);
      float* const dbeta = NewOutput(shape.channels);
      const auto kernel = Make(shape, epilogue);
      EXPECT_OK(kernel->ForwardTraining(x, Put(Floats(a.gamma)),
                                        Put(Floats(a.beta)),
                                        NewOutput(shape.size())));
      EXPECT_OK(kernel->Backward(x, dy, {dgamma, dbeta, dx}, {}));
      // Gradients are as large as some tens of terms of about 1.
      const auto is_near = [&](Values Arguments::*member) {
        return Pointwise(FloatNear(20 * kTolerance),
                         Floats(a.Gradient(shape, epilogue, member)));
      };
      EXPECT_THAT(Get(dx, shape.size()), is_near(&Arguments::x));
      EXPECT_THAT(Get(dgamma, shape.channels), is_near(&Arguments::gamma));
      EXPECT_THAT(Get(dbeta, shape.channels), is_near(&Arguments::beta));
    }
  }
}

// The bits of a normalization and a sum, one after the other.
TEST_P(BatchNormalizationTest, ATermIsAddedBeforeTheEpilogue) {
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(absl::StrCat(shape.rows, "x", shape.channels));
    const Arguments a(shape);
    const int64_t size = shape.size();
    const std::vector<float> mean = Floats(Random(shape.channels, 6));
    const std::vector<float> variance(shape.channels, .5f);
    const BatchNormalization::Moments moving = {Put(mean), Put(variance)};
    float* const x = Put(Floats(a.x));
    float* const gamma = Put(Floats(a.gamma));
    float* const beta = Put(Floats(a.beta));
    float* const term = Put(Floats(Random(size, 5)));
    const auto plain = Make(shape);
    for (const Epilogue epilogue : {Epilogue::kNone, Epilogue::kRelu}) {
      const bool has_relu = epilogue == Epilogue::kRelu;
      const auto kernel = MakeSum(shape, epilogue);
      const auto add = [&](float* y) {
        EXPECT_OK(Add(device(), y, term, size,
                      has_relu ? AddEpilogue::kRelu : AddEpilogue::kNone, y));
        return Get(y, size);
      };
      float* const y = NewOutput(size);
      float* const want = NewOutput(size);
      EXPECT_OK(kernel->ForwardEvaluation(x, gamma, beta, moving, term, y));
      EXPECT_OK(plain->ForwardEvaluation(x, gamma, beta, moving, want));
      EXPECT_EQ(Get(y, size), add(want));
      EXPECT_OK(kernel->ForwardTraining(x, gamma, beta, term, y));
      EXPECT_OK(plain->ForwardTraining(x, gamma, beta, want));
      EXPECT_EQ(Get(y, size), add(want));

      float* const dy = Put(Floats(a.dy));
      float* const dx = NewOutput(size);
      float* const dgamma = NewOutput(shape.channels);
      float* const dbeta = NewOutput(shape.channels);
      EXPECT_OK(kernel->BackwardOfSum(x, y, dy, {dgamma, dbeta, dx}, {}));
      float* const want_dy = Put(Floats(a.dy));
      float* const want_dx = NewOutput(size);
      float* const want_dgamma = NewOutput(shape.channels);
      float* const want_dbeta = NewOutput(shape.channels);
      if (has_relu) {
        EXPECT_OK(ReluGradient(device(), want, want_dy, size, want_dy));
      }
      EXPECT_OK(
          plain->Backward(x, want_dy, {want_dgamma, want_dbeta, want_dx}, {}));
      EXPECT_EQ(Get(dy, size), Get(want_dy, size));
      EXPECT_EQ(Get(dx, size), Get(want_dx, size));
      EXPECT_EQ(Get(dgamma, shape.channels), Get(want_dgamma, shape.channels));
      EXPECT_EQ(Get(dbeta, shape.channels), Get(want_dbeta, shape.channels));
    }
  }
}

TEST_P(BatchNormalizationTest, MovingMomentsFollowTheUnbiasedVariance) {
  for (const Shape& shape : {Shape{1, 5}, Shape{2, 4}, Shape{100, 16}}) {
    SCOPED_TRACE(absl::StrCat(shape.rows, "x", shape.channels));
    const Arguments a(shape);
    const Values mean = Random(shape.channels, 5);
    const Values variance = Random(shape.channels, 6);
    float* const mean_change = NewOutput(shape.channels);
    float* const variance_change = NewOutput(shape.channels);
    const auto kernel = Make(shape);
    EXPECT_OK(kernel->ForwardTraining(Put(Floats(a.x)), nullptr, nullptr,
                                      NewOutput(shape.size())));
    EXPECT_OK(
        kernel->Backward(Put(Floats(a.x)), Put(Floats(a.dy)), {},
                         {.moving = {Put(Floats(mean)), Put(Floats(variance))},
                          .momentum = .9,
                          .change = {mean_change, variance_change}}));
    const auto batch = reference::MomentsOf(a.x, shape.channels);
    const double unbiased =
        shape.rows == 1 ? 1 : shape.rows / (shape.rows - 1.0);
    Values want_mean, want_variance;
    for (int64_t c = 0; c < shape.channels; ++c) {
      want_mean.push_back(.1 * (mean[c] - batch.mean[c]));
      want_variance.push_back(.1 *
                              (variance[c] - batch.variance[c] * unbiased));
    }
    EXPECT_THAT(Get(mean_change, shape.channels),
                Pointwise(FloatNear(kTolerance), Floats(want_mean)));
    EXPECT_THAT(Get(variance_change, shape.channels),
                Pointwise(FloatNear(kTolerance), Floats(want_variance)));
  }
}

TEST_P(BatchNormalizationTest, TheChangeOfMomentsNeedsNoBackwardPass) {
  for (const Shape& shape : {Shape{1, 5}, Shape{100, 16}, Shape{64, 300}}) {
    SCOPED_TRACE(absl::StrCat(shape.rows, "x", shape.channels));
    const Arguments a(shape);
    float* const x = Put(Floats(a.x));
    const BatchNormalization::Moments moving = {
        Put(Floats(Random(shape.channels, 5))),
        Put(Floats(Random(shape.channels, 6)))};
    std::vector<float*> changes;
    for (int i = 0; i < 4; ++i) changes.push_back(NewOutput(shape.channels));
    const auto kernel = Make(shape);
    EXPECT_OK(
        kernel->ForwardTraining(x, nullptr, nullptr, NewOutput(shape.size())));
    EXPECT_OK(kernel->ChangeMoments({.moving = moving,
                                     .momentum = .9,
                                     .change = {changes[0], changes[1]}}));
    EXPECT_OK(kernel->Backward(x, Put(Floats(a.dy)), {},
                               {.moving = moving,
                                .momentum = .9,
                                .change = {changes[2], changes[3]}}));
    EXPECT_EQ(Get(changes[0], shape.channels), Get(changes[2], shape.channels));
    EXPECT_EQ(Get(changes[1], shape.channels), Get(changes[3], shape.channels));
  }
}

// y = (x - mean) · gamma / sqrt(variance + epsilon) + beta, all constants.
TEST_P(BatchNormalizationTest, GradientsOfEvaluationTakeMomentsAsConstants) {
  const Shape shape = {100, 6};
  const Arguments a(shape);
  const Values mean = Random(shape.channels, 5);
  Values variance = Random(shape.channels, 6);
  for (double& value : variance) value = 1.5 + value;
  float* const x = Put(Floats(a.x));
  float* const y = NewOutput(shape.size());
  const auto kernel = Make(shape, Epilogue::kRelu);
  EXPECT_OK(
      kernel->ForwardEvaluation(x, Put(Floats(a.gamma)), Put(Floats(a.beta)),
                                {Put(Floats(mean)), Put(Floats(variance))}, y));
  float* const dx = NewOutput(shape.size());
  float* const dgamma = NewOutput(shape.channels);
  float* const dbeta = NewOutput(shape.channels);
  EXPECT_OK(kernel->Backward(
      x, Put(Floats(a.dy)),
      {.dgamma = dgamma, .dbeta = dbeta, .dx = dx, .of_evaluation = true}, {}));
  const std::vector<float> outputs = Get(y, shape.size());
  Values want_dx, want_dgamma(shape.channels), want_dbeta(shape.channels);
  for (int64_t i = 0; i < shape.size(); ++i) {
    const int64_t c = i % shape.channels;
    const double inverse = 1 / std::sqrt(variance[c] + kEpsilon);
    const double dy = outputs[i] > 0 ? a.dy[i] : 0;
    want_dx.push_back(dy * a.gamma[c] * inverse);
    want_dgamma[c] += dy * (a.x[i] - mean[c]) * inverse;
    want_dbeta[c] += dy;
  }
  EXPECT_THAT(Get(dx, shape.size()),
              Pointwise(FloatNear(kTolerance), Floats(want_dx)));
  EXPECT_THAT(Get(dgamma, shape.channels),
              Pointwise(FloatNear(20 * kTolerance), Floats(want_dgamma)));
  EXPECT_THAT(Get(dbeta, shape.channels),
              Pointwise(FloatNear(20 * kTolerance), Floats(want_dbeta)));
}

TEST_P(BatchNormalizationTest, ALargeMeanCostsNoPrecision) {
  const Shape shape = {4000, 16};
  Values x = Random(shape.size(), 1);
  // x keeps 11 bits of its fraction, so that the reference sees the same.
  for (double& value : x)
    value = 4096 + std::ldexp(std::rint(value * 2048), -11);
  float* const y = NewOutput(shape.size());
  EXPECT_OK(Make(shape)->ForwardTraining(Put(Floats(x)), nullptr, nullptr, y));
  // The mean itself, a float32, is only known to 2^-12 of a deviation.
  EXPECT_THAT(
      Get(y, shape.size()),
      Pointwise(FloatNear(1e-3), Floats(reference::BatchNormalization(
                                     x, reference::MomentsOf(x, shape.channels),
                                     {}, {}, kEpsilon))));
}

struct Results {
  std::vector<float> y, dx, dgamma, dbeta;
};

// With a relu, whose edge would move with the mean. Rows enough for several
// blocks of a CUDA device; means of 1700 deviations.
TEST_P(BatchNormalizationTest, ALargeMeanGivesTheCpusGradients) {
  const Shape shape = {5000, 40};
  const Arguments a(shape);
  std::vector<float> x;
  // Deviations of a uniform value are 1 / sqrt(3).
  for (const double value : a.x) x.push_back(981.5 + value);
  const std::unique_ptr<Device> cpu = *Device::Open("cpu");
  const auto on_cpu = *BatchNormalization::Create(
      *cpu, shape, {.epsilon = kEpsilon, .epilogue = Epilogue::kRelu});
  const std::vector<float> gamma = Floats(a.gamma), beta = Floats(a.beta),
                           dy = Floats(a.dy);
  Results want = {.y = x, .dx = x, .dgamma = gamma, .dbeta = beta};
  ASSERT_OK(on_cpu->ForwardTraining(x.data(), gamma.data(), beta.data(),
                                    want.y.data()));
  ASSERT_OK(on_cpu->Backward(
      x.data(), dy.data(),
      {want.dgamma.data(), want.dbeta.data(), want.dx.data()}, {}));

  const auto kernel = Make(shape, Epilogue::kRelu);
  float* const y = NewOutput(shape.size());
  float* const dx = NewOutput(shape.size());
  float* const dgamma = NewOutput(shape.channels);
  float* const dbeta = NewOutput(shape.channels);
  float* const on_device = Put(x);
  EXPECT_OK(kernel->ForwardTraining(on_device, Put(gamma), Put(beta), y));
  EXPECT_OK(kernel->Backward(on_device, Put(dy), {dgamma, dbeta, dx}, {}));
  EXPECT_THAT(Get(y, shape.size()), Pointwise(FloatNear(1e-5), want.y));
  // Sums of 5,000 terms, whose float roundings add up.
  EXPECT_THAT(Get(dgamma, shape.channels),
              Pointwise(FloatNear(5e-3), want.dgamma));
  EXPECT_THAT(Get(dbeta, shape.channels),
              Pointwise(FloatNear(5e-3), want.dbeta));
  EXPECT_THAT(Get(dx, shape.size()), Pointwise(FloatNear(1e-5), want.dx));
}

TEST_P(BatchNormalizationTest, ReluKeepsNan) {
  const Shape shape = {40, 16};
  std::vector<float> x = Floats(Random(shape.size(), 1));
  for (int64_t c = 0; c < shape.channels; ++c) {
    x[c] = std::numeric_limits<float>::quiet_NaN();
  }
  float* const y = NewOutput(shape.size());
  EXPECT_OK(Make(shape, Epilogue::kRelu)
                ->ForwardTraining(Put(x), nullptr, nullptr, y));
  EXPECT_THAT(Get(y, shape.size()), Each(testing::IsNan()));
}

// Images of bfloat16, on CUDA devices: what goes over them rounds its results.
class Bfloat16BatchNormalizationTest : public BatchNormalizationTest {
 protected:
  // Arguments of which bfloat16 holds the images.
  static Arguments RoundedArguments(const Shape& shape) {
    Arguments a(shape);
    for (Values* const values : {&a.x, &a.dy}) {
      const std::vector<float> rounded = Rounded(Floats(*values));
      values->assign(rounded.begin(), rounded.end());
    }
    return a;
  }
  Bfloat16* PutRounded(const Values& values) {
    return Put(ToBfloat16(Floats(values)));
  }
  void ExpectRounded(const Bfloat16* got, const Values& want,
                     double tolerance) {
    const std::vector<float> floats = ToFloats(Get(got, want.size()));
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_NEAR(floats[i], want[i],
                  tolerance + kBfloat16Rounding * std::abs(want[i]))
          << i;
    }
  }
};

// An odd number of channels has one to a thread, an even one two.
TEST_P(Bfloat16BatchNormalizationTest, OutputsAreTheReferenceRounded) {
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(absl::StrCat(shape.rows, "x", shape.channels));
    const Arguments a = RoundedArguments(shape);
    const reference::ChannelMoments moments =
        reference::MomentsOf(a.x, shape.channels);
    for (const Epilogue epilogue : {Epilogue::kNone, Epilogue::kRelu}) {
      const auto kernel = Make(shape, epilogue);
      float* const gamma = Put(Floats(a.gamma));
      float* const beta = Put(Floats(a.beta));
      Bfloat16* const y = PutRounded(a.dy);
      EXPECT_OK(kernel->ForwardTraining(PutRounded(a.x), gamma, beta, y));
      ExpectRounded(y, a.Output(shape, epilogue), kTolerance);
      Bfloat16* const evaluated = PutRounded(a.dy);
      EXPECT_OK(kernel->ForwardEvaluation(
          PutRounded(a.x), gamma, beta,
          {Put(Floats(moments.mean)), Put(Floats(moments.variance))},
          evaluated));
      ExpectRounded(evaluated, a.Output(shape, epilogue), kTolerance);
    }
  }
}

TEST_P(Bfloat16BatchNormalizationTest, GradientsAreTheReferences) {
  for (const Shape& shape :
       {Shape{1, 5}, Shape{2, 4}, Shape{7, 3}, Shape{86, 6}, Shape{20, 16}}) {
    SCOPED_TRACE(absl::StrCat(shape.rows, "x", shape.channels));
    const Arguments a = RoundedArguments(shape);
    for (const Epilogue epilogue : {Epilogue::kNone, Epilogue::kRelu}) {
      Bfloat16* const x = PutRounded(a.x);
      Bfloat16* const dx = PutRounded(a.x);
      float* const dgamma = NewOutput(shape.channels);
      float* const dbeta = NewOutput(shape.channels);
      const auto kernel = Make(shape, epilogue);
      EXPECT_OK(kernel->ForwardTraining(x, Put(Floats(a.gamma)),
                                        Put(Floats(a.beta)), PutRounded(a.dy)));
      EXPECT_OK(kernel->Backward(x, PutRounded(a.dy), {dgamma, dbeta, dx}, {}));
      ExpectRounded(dx, a.Gradient(shape, epilogue, &Arguments::x),
                    20 * kTolerance);
      // Sums are float32, so variables' gradients are as with float32.
      const auto is_near = [&](Values Arguments::*member) {
        return Pointwise(FloatNear(20 * kTolerance),
                         Floats(a.Gradient(shape, epilogue, member)));
      };
      EXPECT_THAT(Get(dgamma, shape.channels), is_near(&Arguments::gamma));
      EXPECT_THAT(Get(dbeta, shape.channels), is_near(&Arguments::beta));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Bfloat16BatchNormalizationTest,
                         ::testing::Values("cuda:0"), DeviceName);

TEST(BatchNormalizationThreadsTest, TwoThreadsComputeWhatOneDoes) {
  const Shape shape = {4000, 16};
  const Arguments a(shape);
  const std::vector<float> x = Floats(a.x);
  const std::vector<float> dy = Floats(a.dy);
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 2}) {
    auto device = *Device::Open("cpu", {.threads = threads});
    auto kernel = *BatchNormalization::Create(*device, shape,
                                              {.epilogue = Epilogue::kRelu});
    std::vector<float> all(2 * shape.size() + 2 * shape.channels);
    float* const y = all.data();
    float* const dx = y + shape.size();
    float* const dgamma = dx + shape.size();
    EXPECT_OK(kernel->ForwardTraining(x.data(), nullptr, nullptr, y));
    EXPECT_OK(kernel->Backward(x.data(), dy.data(),
                               {dgamma, dgamma + shape.channels, dx}, {}));
    results.push_back(std::move(all));
  }
  EXPECT_THAT(results[1], Pointwise(FloatNear(1e-4), results[0]));
}

INSTANTIATE_TEST_SUITE_P(Devices, BatchNormalizationTest, DevicesUnderTest(),
                         DeviceName);

}  // namespace
}  // namespace parasol
