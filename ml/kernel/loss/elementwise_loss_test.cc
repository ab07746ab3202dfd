#include "ml/kernel/loss/elementwise_loss.h"

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/kernel/testing/loss_fixture.h"

namespace parasol {
namespace {

using ::testing::FloatNear;
using ::testing::Pointwise;

struct Case {
  std::string name;
  ElementwiseTerm term;
  std::function<double(double z, double y)> loss;
  enum { kNumbers, kProbabilities, kCounts } labels = kNumbers;
  bool of_probabilities = false;  // outputs are from 0 to 1
};

double Focal(double z, double label, double gamma, double alpha,
             double smoothing) {
  const double y = label * (1 - smoothing) + smoothing / 2;
  const double p = 1 / (1 + std::exp(-z));
  const double q = 1 - (y * p + (1 - y) * (1 - p));
  const double factor = alpha < 0 ? 1 : y * alpha + (1 - y) * (1 - alpha);
  return factor * std::pow(q, gamma) *
         -(y * std::log(p) + (1 - y) * std::log(1 - p));
}

std::vector<Case> Cases() {
  return {
      {"absolute error", AbsoluteErrorTerm(),
       [](double z, double y) { return std::fabs(z - y); }},
      {"huber", HuberTerm{1.5f},
       [](double z, double y) {
         const double e = std::fabs(z - y);
         return e <= 1.5 ? e * e / 2 : 1.5 * (e - .75);
       }},
      {"hinge", HingeTerm(),
       [](double z, double y) {
         return std::max(0.0, 1 - (y > .5 ? 1 : -1) * z);
       },
       Case::kProbabilities},
      {"poisson", PoissonTerm(),
       [](double z, double y) { return z - y * std::log(z + 1e-7); },
       Case::kCounts},
      {"focal", FocalTerm{2, 1, 1, 0},
       [](double z, double y) { return Focal(z, y, 2, -1, 0); },
       Case::kProbabilities},
      {"focal with all", FocalTerm{1.5f, .25f, .75f, .25f},
       [](double z, double y) { return Focal(z, y, 1.5, .25, .25); },
       Case::kProbabilities},
      {"cross-entropy of probabilities", ProbabilityTerm{.25f},
       [](double p, double label) {
         const double y = label * .75 + .125;
         return -y * std::log(p + 1e-7) - (1 - y) * std::log(1 - p + 1e-7);
       },
       Case::kProbabilities, /*of_probabilities=*/true},
      {"focal with gamma 0", FocalTerm{0, 1, 1, 0},
       [](double z, double y) { return Focal(z, y, 0, -1, 0); },
       Case::kProbabilities},
  };
}

class ElementwiseLossTest : public LossKernelTest {
 protected:
  Kernel Loss(const ElementwiseTerm& term) {
    return [this, term](const LossBatch& batch, const LossResult& out) {
      return ElementwiseLoss(device(), batch, term, out);
    };
  }

  static Reference ReferenceOf(const Case& c) {
    return [&c](const reference::Matrix& outputs,
                const std::vector<double>& labels,
                const std::vector<double>& weights) {
      std::vector<double> losses;
      for (int64_t i = 0; i < outputs.rows; ++i) {
        double sum = 0;
        for (int64_t j = 0; j < outputs.columns; ++j) {
          sum += c.loss(outputs.at(i, j), labels[i * outputs.columns + j]);
        }
        losses.push_back((weights.empty() ? 1 : weights[i]) * sum /
                         outputs.columns);
      }
      return losses;
    };
  }

  // No output is next to a kink, whose central difference would be neither
  // side's.
  static Problem ProblemOf(const Case& c, int64_t rows, int64_t columns) {
    Problem problem = RandomProblem(rows, columns);
    problem.labels = RandomMatrix(rows, columns, 3).values;
    for (size_t i = 0; i < problem.labels.size(); ++i) {
      double& z = problem.outputs.values[i];
      double& y = problem.labels[i];
      if (c.labels == Case::kProbabilities) y = y > 0 ? 1 : 0;
      if (c.labels == Case::kCounts) {
        y = std::floor(std::fabs(y) * 5);
        z = std::fabs(z) + .5;
      }
      for (const double kink : {y, y - 1.5, y + 1.5, 1.0, -1.0}) {
        if (std::fabs(z - kink) < 1e-3) z += .01;
      }
      if (c.of_probabilities) z = .05 + .9 / (1 + std::exp(-z));
      // Floats, so that the kernel gets the same numbers.
      z = static_cast<float>(z);
    }
    return problem;
  }
};

TEST_P(ElementwiseLossTest, IsTheReference) {
  for (const Case& c : Cases()) {
    for (const int64_t columns : {1, 2, 15, 33, 1000}) {
      for (const int64_t rows : {1, 3, 64}) {
        SCOPED_TRACE(absl::StrCat(c.name, ", ", rows, " of ", columns));
        Problem problem = ProblemOf(c, rows, columns);
        ExpectIsReference(Loss(c.term), ReferenceOf(c), problem);
        problem.weights.clear();
        ExpectIsReference(Loss(c.term), ReferenceOf(c), problem);
      }
    }
  }
}

// Keras's binary_crossentropy of 0 and 1: finite, and without a slope.
TEST_P(ElementwiseLossTest, CertainProbabilitiesAreClipped) {
  const Problem certain{MatrixOf(4, 1, {0, 1, 0, 1}), {1, 0, 0, 1}};
  const Result result = Run(Loss(ProbabilityTerm{0}), certain);
  EXPECT_NEAR(result.losses[0], 15.42, .01);  // -log(2e-7)
  EXPECT_NEAR(result.losses[1], 15.33, .1);
  EXPECT_NEAR(result.losses[2], 0, 1e-6);
  EXPECT_NEAR(result.losses[3], 0, 1e-6);
  EXPECT_THAT(result.gradient, Pointwise(FloatNear(0), {0.0, 0.0, 0.0, 0.0}));
}

TEST_P(ElementwiseLossTest, AtTheKinkTheSlopeIsTensorFlows) {
  const Problem equal{MatrixOf(1, 2, {3, -2}), {3, -2}};
  EXPECT_THAT(Run(Loss(AbsoluteErrorTerm()), equal).gradient,
              Pointwise(FloatNear(0), {0.0, 0.0}));
  const Problem edge{MatrixOf(1, 2, {1, -1}), {1, 0}};
  EXPECT_THAT(Run(Loss(HingeTerm()), edge).gradient,
              Pointwise(FloatNear(0), {-.5, .5}));
}

TEST_P(ElementwiseLossTest, FocalLossOfLogitsOfAThousandIsFinite) {
  for (const float gamma : {0.0f, .5f, 1.0f, 2.0f, 5.0f}) {
    SCOPED_TRACE(gamma);
    const Problem far{MatrixOf(1, 4, {1000, -1000, 1000, -1000}), {1, 0, 0, 1}};
    const Result result = Run(Loss(FocalTerm{gamma, 1, 1, 0}), far);
    // The two wrong ones have a loss of 1,000 each, and the slope of their
    // cross-entropy.
    EXPECT_FLOAT_EQ(result.losses[0], 500);
    EXPECT_THAT(result.gradient,
                Pointwise(FloatNear(1e-6), {0.0, 0.0, .25, -.25}));
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, ElementwiseLossTest, DevicesUnderTest(),
                         DeviceName);

}  // namespace
}  // namespace parasol
