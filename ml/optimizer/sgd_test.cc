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
