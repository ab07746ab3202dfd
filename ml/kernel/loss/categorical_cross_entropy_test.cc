#include "ml/kernel/loss/categorical_cross_entropy.h"

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
using ::testing::FloatNear;
using ::testing::Pointwise;

class CategoricalCrossEntropyTest : public LossKernelTest {
 protected:
  Kernel Dense(double smoothing) {
    return [this, smoothing](const LossBatch& batch, const LossResult& out) {
      return CategoricalCrossEntropy(device(), batch, smoothing, out);
    };
  }
  Kernel Sparse(double smoothing) {
    return [this, smoothing](const LossBatch& batch, const LossResult& out) {
      return SparseCategoricalCrossEntropy(device(), batch, smoothing, out);
    };
  }
  static Reference ReferenceDense(double smoothing) {
    return [smoothing](const auto& logits, const auto& labels,
                       const auto& weights) {
      return reference::CategoricalCrossEntropy(logits, labels, smoothing,
                                                weights);
    };
  }
  static Reference ReferenceSparse(double smoothing) {
    return [smoothing](const auto& logits, const auto& labels,
                       const auto& weights) {
      return reference::SparseCategoricalCrossEntropy(logits, labels, smoothing,
                                                      weights);
    };
  }
};

// Labels that do not add up to 1, too.
TEST_P(CategoricalCrossEntropyTest, DenseIsTheReference) {
  for (const int64_t classes : {1, 2, 15, 16, 33, 100}) {
    for (const double smoothing : {0.0, 0.25}) {
      SCOPED_TRACE(absl::StrCat(classes, " classes, smoothing ", smoothing));
      Problem problem = RandomProblem(17, classes);
      for (const double value : RandomMatrix(17, classes, 3).values) {
        problem.labels.push_back((value + 1) / classes);
      }
      ExpectIsReference(Dense(smoothing), ReferenceDense(smoothing), problem);
      problem.weights.clear();
      ExpectIsReference(Dense(smoothing), ReferenceDense(smoothing), problem);
    }
  }
}

TEST_P(CategoricalCrossEntropyTest, SparseIsTheReference) {
  for (const int64_t classes : {1, 2, 10, 16, 33, 1000}) {
    for (const double smoothing : {0.0, 0.25}) {
      SCOPED_TRACE(absl::StrCat(classes, " classes, smoothing ", smoothing));
      Problem problem = RandomProblem(17, classes);
      for (int64_t i = 0; i < 17; ++i) {
        problem.labels.push_back(i * 7 % classes);
      }
      ExpectIsReference(Sparse(smoothing), ReferenceSparse(smoothing), problem);
      problem.weights.clear();
      ExpectIsReference(Sparse(smoothing), ReferenceSparse(smoothing), problem);
    }
  }
}

// Keras's own test: the means are .0573 and .31829.
TEST_P(CategoricalCrossEntropyTest, LossesAreThoseOfKeras) {
  Problem sparse{MatrixOf(3, 3, {8, 1, 1, 0, 9, 1, 2, 3, 5}), {0, 1, 2}};
  Problem dense{sparse.outputs, {1, 0, 0, 0, 1, 0, 0, 0, 1}};
  const std::vector<float> want = {.001822f, .000459f, .169846f};
  EXPECT_THAT(Run(Sparse(0), sparse).losses, Pointwise(FloatNear(1e-6), want));
  EXPECT_THAT(Run(Dense(0), dense).losses, Pointwise(FloatNear(1e-6), want));

  sparse.weights = dense.weights = {1.2, 3.4, 5.6};
  for (const std::vector<float>& losses :
       {Run(Sparse(0), sparse).losses, Run(Dense(0), dense).losses}) {
    EXPECT_NEAR((losses[0] + losses[1] + losses[2]) / 3, .31829, 1e-5);
  }
}

TEST_P(CategoricalCrossEntropyTest, LargeLogitsDoNotOverflow) {
  const Problem problem{
      MatrixOf(4, 2, {1e30, -1e30, 10000, 9999, 1000, -1000, 1000, -1000}),
      {0, 1, 0, 1}};
  const Result result = Run(Sparse(0), problem);
  EXPECT_EQ(result.losses[0], 0);
  EXPECT_NEAR(result.losses[1], std::log(1 + std::exp(1.0)), 1e-6);
  EXPECT_EQ(result.losses[2], 0);
  EXPECT_EQ(result.losses[3], 2000);
  EXPECT_FLOAT_EQ(result.gradient[6], .25);
  EXPECT_FLOAT_EQ(result.gradient[7], -.25);
}

TEST_P(CategoricalCrossEntropyTest, ClassesThatAreRuledOutCostNothing) {
  for (const int64_t classes : {2, 10, 33, 1000}) {
    SCOPED_TRACE(classes);
    Problem problem{reference::Matrix(1, classes), {0}};
    for (int64_t i = 1; i < classes; ++i) {
      problem.outputs.at(0, i) = -std::numeric_limits<double>::infinity();
    }
    const Result result = Run(Sparse(0), problem);
    EXPECT_EQ(result.losses[0], 0);
    EXPECT_THAT(result.gradient, Each(0));
  }
}

TEST_P(CategoricalCrossEntropyTest, NanLogitsGiveANanLoss) {
  for (const int64_t nan : {0, 1, 20}) {
    Problem problem{reference::Matrix(1, 33), {0}};
    problem.outputs.at(0, nan) = std::numeric_limits<double>::quiet_NaN();
    EXPECT_TRUE(std::isnan(Run(Sparse(0), problem).losses[0])) << nan;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, CategoricalCrossEntropyTest,
                         DevicesUnderTest(), DeviceName);

}  // namespace
}  // namespace parasol
