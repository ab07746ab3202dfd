#include "ml/optimizer/rmsprop.h"

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

TEST(RmsPropTest, StepsByTheRootOfTheMeanSquare) {
  ASSERT_OK_AND_ASSIGN(const auto rmsprop,
                       MakeRmsProp(job::RmsProp(), /*schedule=*/{}));
  EXPECT_EQ(rmsprop->other_rows(), Optimizer::OtherRows::kSlots);
  TestTable table(*rmsprop, {0});
  table.Apply(*rmsprop, 0, {10});
  EXPECT_THAT(table.slots[0], ElementsAre(FloatEq(10)));
  EXPECT_THAT(table.value,
              ElementsAre(FloatNear(-.001f * std::sqrt(10.f), 1e-8f)));
}

TEST(RmsPropTest, MomentumHasASlotOfItsOwnAndLeavesOtherRowsAlone) {
  job::RmsProp spec;
  spec.set_momentum(.5);
  spec.set_centered(true);
  ASSERT_OK_AND_ASSIGN(const auto rmsprop, MakeRmsProp(spec, /*schedule=*/{}));
  EXPECT_THAT(rmsprop->slot_names(), ElementsAre("rms", "momentum", "mg"));
  EXPECT_EQ(rmsprop->other_rows(), Optimizer::OtherRows::kUntouched);
  TestTable table(*rmsprop, {0});
  table.Apply(*rmsprop, 0, {1});
  const float step = table.slots[1][0];
  table.Apply(*rmsprop, 1, {0});
  EXPECT_THAT(table.slots[1], ElementsAre(step / 2));
  EXPECT_THAT(table.value, ElementsAre(FloatEq(-1.5f * step)));
}

TEST(RmsPropTest, CenteredDividesByTheDeviation) {
  job::RmsProp spec;
  spec.set_centered(true);
  spec.set_rho(.5);
  ASSERT_OK_AND_ASSIGN(const auto rmsprop, MakeRmsProp(spec, /*schedule=*/{}));
  TestTable table(*rmsprop, {0});
  table.Apply(*rmsprop, 0, {2});  // rms 2, mg 1
  EXPECT_THAT(table.slots[1], ElementsAre(1));
  EXPECT_THAT(table.value, ElementsAre(FloatNear(-.002f, 1e-8f)));
}

TEST(RmsPropTest, ParametersOutOfRangeAreNamed) {
  job::RmsProp spec;
  spec.set_rho(1);
  EXPECT_THAT(MakeRmsProp(spec, /*schedule=*/{}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("rmsprop.rho is 1")));
}

}  // namespace
}  // namespace parasol
