#include "ml/kernel/softmax_cross_entropy.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/kernel/device_test_base.h"
#include "ml/kernel/reference.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::FloatNear;
using ::testing::Pointwise;

std::vector<float> Floats(const std::vector<double>& values) {
  return std::vector<float>(values.begin(), values.end());
}

class SoftmaxCrossEntropyTest : public DeviceTest {
 protected:
  struct Result {
    std::vector<float> loss;
    std::vector<int32_t> correct;
    std::vector<float> gradient;
  };

  Result Run(const reference::Matrix& logits,
             const std::vector<int32_t>& labels) {
    const MutableMatrixView gradient =
        Put(reference::Matrix(logits.rows, logits.columns));
    const CrossEntropyOutputs out = {
        .loss = Put(std::vector<float>(logits.rows)),
        .correct = Put(std::vector<int32_t>(logits.rows)),
        .gradient = gradient.data};
    EXPECT_OK(SoftmaxCrossEntropy(device(), Put(logits), Put(labels), out));
    return {Get(out.loss, logits.rows), Get(out.correct, logits.rows),
            Get(gradient)};
  }
};

// Literals of Keras's own test of sparse categorical cross-entropy.
TEST_P(SoftmaxCrossEntropyTest, LossesAreThoseOfKeras) {
  reference::Matrix logits(3, 3);
  logits.values = {8, 1, 1, 0, 9, 1, 2, 3, 5};
  const Result result = Run(logits, {0, 1, 2});
  EXPECT_THAT(result.loss,
              Pointwise(FloatNear(1e-6), {.001822f, .000459f, .169846f}));
  EXPECT_NEAR((result.loss[0] + result.loss[1] + result.loss[2]) / 3, .0573,
              1e-4);
  EXPECT_THAT(result.correct, ElementsAre(1, 1, 1));
}

// The device's exp and log are good to a few units of 2^-24.
TEST_P(SoftmaxCrossEntropyTest, IsTheReference) {
  for (int64_t rows : {1, 3, 128}) {
    for (int64_t classes : {1, 2, 10, 31, 33, 1000}) {
      SCOPED_TRACE(absl::StrCat(rows, " examples of ", classes, " classes"));
      reference::Matrix logits = RandomMatrix(rows, classes, 1);
      for (double& value : logits.values) value *= 8;
      std::vector<int32_t> labels(rows);
      for (int64_t i = 0; i < rows; ++i) labels[i] = (i * 7) % classes;

      const Result result = Run(logits, labels);
      const reference::CrossEntropy want =
          reference::SoftmaxCrossEntropy(logits, labels);
      EXPECT_THAT(result.loss, Pointwise(FloatNear(1e-5), Floats(want.loss)));
      EXPECT_THAT(result.correct, ElementsAreArray(want.correct));
      EXPECT_THAT(result.gradient,
                  Pointwise(FloatNear(1e-6), Floats(want.gradient.values)));
    }
  }
}

TEST_P(SoftmaxCrossEntropyTest, OfEqualLogitsTheFirstCounts) {
  const reference::Matrix logits(2, 40);
  EXPECT_THAT(Run(logits, {0, 39}).correct, ElementsAre(1, 0));
}

TEST_P(SoftmaxCrossEntropyTest, LargeLogitsDoNotOverflow) {
  reference::Matrix logits(2, 2);
  logits.values = {1e30, -1e30, 10000, 9999};
  const Result result = Run(logits, {0, 1});
  EXPECT_EQ(result.loss[0], 0);
  EXPECT_NEAR(result.loss[1], std::log(1 + std::exp(1.0)), 1e-6);
}

TEST_P(SoftmaxCrossEntropyTest, NanLogitsGiveANanLoss) {
  reference::Matrix logits(1, 3);
  logits.at(0, 1) = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isnan(Run(logits, {0}).loss[0]));
}

TEST_P(SoftmaxCrossEntropyTest, WithoutAGradientTheLossIsTheSame) {
  const reference::Matrix logits = RandomMatrix(4, 5, 1);
  const std::vector<int32_t> labels = {0, 1, 2, 3};
  const CrossEntropyOutputs out = {.loss = Put(std::vector<float>(4)),
                                   .correct = Put(std::vector<int32_t>(4))};
  EXPECT_OK(SoftmaxCrossEntropy(device(), Put(logits), Put(labels), out));
  EXPECT_THAT(Get(out.loss, 4), ElementsAreArray(Run(logits, labels).loss));
}

INSTANTIATE_TEST_SUITE_P(Devices, SoftmaxCrossEntropyTest, DevicesUnderTest(),
                         DeviceName);

}  // namespace
}  // namespace parasol
