#include "ml/optimizer/adam.h"

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

TEST(AdamTest, ParametersOutOfRangeAreNamed) {
  job::Adam spec;
  spec.set_beta_2(1);
  EXPECT_THAT(MakeAdam(spec, /*schedule=*/{}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("adam.beta_2 is 1")));
}

}  // namespace
}  // namespace parasol
