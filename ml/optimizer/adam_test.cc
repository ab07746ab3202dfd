#include "ml/optimizer/adam.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/optimizer/optimizer.h"
#include "ml/optimizer/testing/plain_table.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::FloatNear;
using ::testing::HasSubstr;

// Bias correction cancels 1 - β and √(1 - β₂): the first step is lr·sign(g).
TEST(AdamTest, FirstStepIsTheLearningRateWhateverTheGradient) {
  ASSERT_OK_AND_ASSIGN(const auto adam, MakeAdam(job::Adam(), /*schedule=*/{}));
  TestTable table(*adam, {0, 0});
  table.Apply(*adam, 0, {5, -800});
  EXPECT_THAT(table.value,
              ElementsAre(FloatNear(-.001f, 1e-8f), FloatNear(.001f, 1e-8f)));
}

TEST(AdamTest, ElementsWithoutGradientCoastOnTheirMomentum) {
  ASSERT_OK_AND_ASSIGN(const auto adam, MakeAdam(job::Adam(), /*schedule=*/{}));
  TestTable table(*adam, {0});
  table.Apply(*adam, 0, {1});
  const float after_one = table.value[0];
  table.Apply(*adam, 1, {0});
  EXPECT_LT(table.value[0], after_one);
  EXPECT_THAT(table.slots[0], ElementsAre(FloatEq(.09f)));
}

TEST(AdamTest, AmsgradNeverForgetsTheLargestSquare) {
  job::Adam spec;
  spec.set_amsgrad(true);
  ASSERT_OK_AND_ASSIGN(const auto adam, MakeAdam(spec, /*schedule=*/{}));
  EXPECT_THAT(adam->slot_names(), ElementsAre("m", "v", "vhat"));
  TestTable table(*adam, {0});
  table.Apply(*adam, 0, {10});
  const float largest = table.slots[2][0];
  table.Apply(*adam, 1, {0});
  EXPECT_LT(table.slots[1][0], largest);
  EXPECT_EQ(table.slots[2][0], largest);
}

// Keras's loop in double: the decay comes first and sees no momentum.
TEST(AdamWTest, TakesTheDecayFromTheValueAlone) {
  job::AdamW spec;
  spec.set_learning_rate(.1);
  spec.set_weight_decay(.2);
  for (const bool amsgrad : {false, true}) {
    spec.set_amsgrad(amsgrad);
    ASSERT_OK_AND_ASSIGN(const auto adamw, MakeAdamW(spec, /*schedule=*/{}));
    EXPECT_EQ(adamw->other_rows(), Optimizer::OtherRows::kAll);
    TestTable table(*adamw, {3});
    double w = 3, m = 0, v = 0, vhat = 0;
    for (int t = 1; t <= 10; ++t) {
      const double g = t % 3 - 1.5;
      w -= .1 * .2 * w;
      m = .9 * m + .1 * g;
      v = .999 * v + .001 * g * g;
      vhat = std::max(vhat, v);
      const double alpha =
          .1 * std::sqrt(1 - std::pow(.999, t)) / (1 - std::pow(.9, t));
      w -= alpha * m / (std::sqrt(amsgrad ? vhat : v) + 1e-7);
      table.Apply(*adamw, t - 1, {static_cast<float>(g)});
      EXPECT_NEAR(table.value[0], w, 2e-6) << t;
    }
  }
}

TEST(AdamWTest, WithoutDecayItIsAdam) {
  job::AdamW spec;
  spec.set_weight_decay(0);
  ASSERT_OK_AND_ASSIGN(const auto adamw, MakeAdamW(spec, /*schedule=*/{}));
  ASSERT_OK_AND_ASSIGN(const auto adam, MakeAdam(job::Adam(), /*schedule=*/{}));
  TestTable decayed(*adamw, {3});
  TestTable plain(*adam, {3});
  for (int step = 0; step < 5; ++step) {
    decayed.Apply(*adamw, step, {.5f});
    plain.Apply(*adam, step, {.5f});
  }
  EXPECT_EQ(decayed.value, plain.value);
}

TEST(AdamWTest, ANegativeDecayIsNamed) {
  job::AdamW spec;
  spec.set_weight_decay(-1);
  EXPECT_THAT(MakeAdamW(spec, /*schedule=*/{}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("adamw.weight_decay is -1")));
}

TEST(AdamTest, ParametersOutOfRangeAreNamed) {
  job::Adam spec;
  spec.set_beta_2(1);
  EXPECT_THAT(MakeAdam(spec, /*schedule=*/{}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("adam.beta_2 is 1")));
}

}  // namespace
}  // namespace parasol
