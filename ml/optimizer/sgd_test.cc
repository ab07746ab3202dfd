#include "ml/optimizer/sgd.h"

#include <limits>
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
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(SgdTest, LearningRateIsOneHundredthUnlessSet) {
  ASSERT_OK_AND_ASSIGN(const auto sgd, MakeSgd(job::Sgd(), /*schedule=*/{}));
  TestTable table(*sgd, {1});
  table.Apply(*sgd, 0, {3});
  EXPECT_THAT(table.value, ElementsAre(FloatEq(.97f)));
}

TEST(SgdTest, WithoutMomentumThereIsNoSlot) {
  job::Sgd spec;
  spec.set_momentum(0);
  spec.set_nesterov(true);
  ASSERT_OK_AND_ASSIGN(const auto sgd, MakeSgd(spec, /*schedule=*/{}));
  EXPECT_THAT(sgd->slot_names(), IsEmpty());
}

TEST(SgdTest, MomentumCarriesTheLastStepOn) {
  job::Sgd spec;
  spec.set_learning_rate(1);
  spec.set_momentum(.5);
  ASSERT_OK_AND_ASSIGN(const auto sgd, MakeSgd(spec, /*schedule=*/{}));
  EXPECT_THAT(sgd->slot_names(), ElementsAre("momentum"));
  TestTable table(*sgd, {0});
  table.Apply(*sgd, 0, {-4});
  table.Apply(*sgd, 1, {0});
  EXPECT_THAT(table.value, ElementsAre(6));
  EXPECT_THAT(table.slots[0], ElementsAre(2));
}

TEST(SgdTest, NesterovStepsAheadByTheNewMomentum) {
  job::Sgd spec;
  spec.set_learning_rate(1);
  spec.set_momentum(.5);
  spec.set_nesterov(true);
  ASSERT_OK_AND_ASSIGN(const auto sgd, MakeSgd(spec, /*schedule=*/{}));
  TestTable table(*sgd, {0});
  table.Apply(*sgd, 0, {-4});
  EXPECT_THAT(table.value, ElementsAre(6));
  EXPECT_THAT(table.slots[0], ElementsAre(4));
}

TEST(SgdTest, ADelayedMomentumIsMovedByTheMeanOfSeveralGradients) {
  job::Sgd spec;
  spec.set_learning_rate(1);
  spec.set_momentum(.5);
  spec.set_nesterov(true);
  spec.set_delay(2);
  ASSERT_OK_AND_ASSIGN(const auto sgd, MakeSgd(spec, /*schedule=*/{}));
  EXPECT_THAT(sgd->slot_names(), ElementsAre("momentum", "gathered"));
  TestTable table(*sgd, {0});
  table.Apply(*sgd, 0, {-4});
  EXPECT_THAT(table.value, ElementsAre(2));
  EXPECT_THAT(table.slots[0], ElementsAre(0));
  EXPECT_THAT(table.slots[1], ElementsAre(-4));
  table.Apply(*sgd, 1, {-8});
  // The momentum is 6, half of which is added to the step of 4.
  EXPECT_THAT(table.value, ElementsAre(2 + 3 + 4));
  EXPECT_THAT(table.slots[0], ElementsAre(6));
  EXPECT_THAT(table.slots[1], ElementsAre(0));
  table.Apply(*sgd, 2, {0});
  EXPECT_THAT(table.value, ElementsAre(9));
  table.Apply(*sgd, 3, {0});
  EXPECT_THAT(table.value, ElementsAre(9 + 1.5));
}

TEST(SgdTest, ADelayOfOneIsNesterovsMomentum) {
  job::Sgd spec;
  spec.set_learning_rate(.3);
  spec.set_momentum(.9);
  spec.set_nesterov(true);
  ASSERT_OK_AND_ASSIGN(const auto nesterov, MakeSgd(spec, /*schedule=*/{}));
  spec.set_delay(1);
  ASSERT_OK_AND_ASSIGN(const auto delayed, MakeSgd(spec, /*schedule=*/{}));
  EXPECT_THAT(delayed->slot_names(), ElementsAre("momentum"));
  TestTable a(*nesterov, {1}), b(*delayed, {1});
  for (int i = 0; i < 4; ++i) {
    a.Apply(*nesterov, i, {.5f * i});
    b.Apply(*delayed, i, {.5f * i});
  }
  EXPECT_EQ(a.value, b.value);
}

TEST(SgdTest, ADelayNeedsNesterovsMomentum) {
  job::Sgd spec;
  spec.set_delay(0);
  EXPECT_THAT(MakeSgd(spec, /*schedule=*/{}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("sgd.delay is 0")));
  spec.set_delay(3);
  spec.set_momentum(.9);
  EXPECT_THAT(MakeSgd(spec, /*schedule=*/{}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("needs a momentum, and nesterov: true")));
}

TEST(SgdTest, ParametersOutOfRangeAreNamed) {
  job::Sgd backwards;
  backwards.set_learning_rate(-1);
  EXPECT_THAT(MakeSgd(backwards, /*schedule=*/{}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("sgd.learning_rate is -1")));
  job::Sgd growing;
  growing.set_momentum(1.5);
  EXPECT_THAT(MakeSgd(growing, /*schedule=*/{}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("sgd.momentum is 1.5")));
  job::Sgd nan;
  nan.set_momentum(std::numeric_limits<double>::quiet_NaN());
  EXPECT_THAT(MakeSgd(nan, /*schedule=*/{}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace parasol
