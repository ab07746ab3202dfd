#include "ml/kernel/loss/mean_squared_error.h"

#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/kernel/testing/loss_fixture.h"
#include "ml/kernel/testing/reference_loss.h"

namespace parasol {
namespace {

using ::testing::FloatNear;
using ::testing::Pointwise;

class MeanSquaredErrorTest : public LossKernelTest {
 protected:
  Kernel Loss() {
    return [this](const LossBatch& batch, const LossResult& out) {
      return MeanSquaredError(device(), batch, out);
    };
  }
};

TEST_P(MeanSquaredErrorTest, IsTheReference) {
  for (const int64_t columns : {1, 2, 15, 16, 33, 1000}) {
    for (const int64_t rows : {1, 3, 64}) {
      SCOPED_TRACE(absl::StrCat(rows, " examples of ", columns));
      Problem problem = RandomProblem(rows, columns);
      problem.labels = RandomMatrix(rows, columns, 3).values;
      ExpectIsReference(Loss(), reference::MeanSquaredError, problem);
      problem.weights.clear();
      ExpectIsReference(Loss(), reference::MeanSquaredError, problem);
    }
  }
}

// Keras's own test: the means are 49.5 and 767.8 / 6.
TEST_P(MeanSquaredErrorTest, LossesAreThoseOfKeras) {
  Problem problem{MatrixOf(2, 3, {4, 8, 12, 8, 1, 3}), {1, 9, 2, -5, -2, 6}};
  EXPECT_THAT(Run(Loss(), problem).losses,
              Pointwise(FloatNear(1e-5), {110 / 3.0, 187 / 3.0}));
  problem.weights = {1.2, 3.4};
  EXPECT_THAT(Run(Loss(), problem).losses,
              Pointwise(FloatNear(1e-4), {1.2 * 110 / 3, 3.4 * 187 / 3}));
}

INSTANTIATE_TEST_SUITE_P(Devices, MeanSquaredErrorTest, DevicesUnderTest(),
                         DeviceName);

}  // namespace
}  // namespace parasol
