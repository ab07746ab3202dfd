#include "ml/kernel/loss/binary_cross_entropy.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/kernel/testing/loss_fixture.h"
#include "ml/kernel/testing/reference_loss.h"

namespace parasol {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pointwise;

class BinaryCrossEntropyTest : public LossKernelTest {
 protected:
  Kernel Loss(double smoothing) {
    return [this, smoothing](const LossBatch& batch, const LossResult& out) {
      return BinaryCrossEntropy(device(), batch, smoothing, out);
    };
  }
  static Reference ReferenceLoss(double smoothing) {
    return [smoothing](const reference::Matrix& logits,
                       const std::vector<double>& labels,
                       const std::vector<double>& weights) {
      return reference::BinaryCrossEntropy(logits, labels, smoothing, weights);
    };
  }
};

TEST_P(BinaryCrossEntropyTest, IsTheReference) {
  for (const int64_t columns : {1, 2, 15, 16, 33, 1000}) {
    for (const double smoothing : {0.0, 0.25}) {
      SCOPED_TRACE(absl::StrCat(columns, " outputs, smoothing ", smoothing));
      Problem problem = RandomProblem(17, columns);
      for (const double value : RandomMatrix(17, columns, 3).values) {
        problem.labels.push_back((value + 1) / 2);
      }
      ExpectIsReference(Loss(smoothing), ReferenceLoss(smoothing), problem);
      problem.weights.clear();
      ExpectIsReference(Loss(smoothing), ReferenceLoss(smoothing), problem);
    }
  }
}

// Keras's own tests: the means are 33.333 and 35.0.
TEST_P(BinaryCrossEntropyTest, LossesAreThoseOfKeras) {
  const Problem problem{MatrixOf(2, 3, {100, -100, 100, 100, 100, -100}),
                        {1, 0, 1, 0, 1, 1}};
  EXPECT_THAT(Run(Loss(0), problem).losses,
              Pointwise(FloatNear(1e-4), {0.0, 200 / 3.0}));
  const Problem smoothed{MatrixOf(1, 3, {100, -100, -100}), {1, 0, 1}};
  EXPECT_THAT(Run(Loss(.1), smoothed).losses, ElementsAre(FloatNear(35, 1e-4)));
}

TEST_P(BinaryCrossEntropyTest, LargeLogitsDoNotOverflow) {
  const Problem problem{MatrixOf(4, 1, {1000, -1000, 1000, -1000}),
                        {1, 0, 0, 1}};
  const Result result = Run(Loss(0), problem);
  EXPECT_THAT(result.losses, ElementsAre(0, 0, 1000, 1000));
  EXPECT_THAT(result.gradient, ElementsAre(0, 0, .25, -.25));
}

// The loss of a confident and right answer is e^-|z|, not 0.
TEST_P(BinaryCrossEntropyTest, SmallLossesAreExact) {
  const Problem problem{MatrixOf(2, 1, {30, -30}), {1, 0}};
  EXPECT_THAT(Run(Loss(0), problem).losses,
              Each(FloatNear(std::exp(-30.0), 1e-6 * std::exp(-30.0))));
}

TEST_P(BinaryCrossEntropyTest, NanLogitsGiveANanLossAndGradient) {
  const Problem problem{
      MatrixOf(1, 2, {0, std::numeric_limits<double>::quiet_NaN()}), {0, 1}};
  const Result result = Run(Loss(0), problem);
  EXPECT_TRUE(std::isnan(result.losses[0]));
  EXPECT_TRUE(std::isnan(result.gradient[1]));
}

INSTANTIATE_TEST_SUITE_P(Devices, BinaryCrossEntropyTest, DevicesUnderTest(),
                         DeviceName);

}  // namespace
}  // namespace parasol
