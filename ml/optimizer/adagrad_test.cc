#include "ml/optimizer/adagrad.h"

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
using ::testing::FloatNear;
using ::testing::HasSubstr;

TEST(AdagradTest, AccumulatorStartsAtOneTenthUnlessSet) {
  ASSERT_OK_AND_ASSIGN(const auto adagrad,
                       MakeAdagrad(job::Adagrad(), /*schedule=*/{}));
  EXPECT_THAT(adagrad->slot_names(), ElementsAre("accumulator"));
  EXPECT_FLOAT_EQ(adagrad->InitialSlotValue(0), .1f);
}

TEST(AdagradTest, StepIsDividedByTheRootOfTheSquaresSoFar) {
  job::Adagrad spec;
  spec.set_learning_rate(1);
  spec.set_initial_accumulator_value(9);
  ASSERT_OK_AND_ASSIGN(const auto adagrad, MakeAdagrad(spec, /*schedule=*/{}));
  TestTable table(*adagrad, {1});
  table.Apply(*adagrad, 0, {4});
  EXPECT_THAT(table.value, ElementsAre(FloatNear(.2f, 1e-6f)));
  EXPECT_THAT(table.slots[0], ElementsAre(25));
}

TEST(AdagradTest, EpsilonIsAddedOutsideTheRoot) {
  job::Adagrad spec;
  spec.set_learning_rate(1);
  spec.set_initial_accumulator_value(0);
  spec.set_epsilon(2);
  ASSERT_OK_AND_ASSIGN(const auto adagrad, MakeAdagrad(spec, /*schedule=*/{}));
  TestTable table(*adagrad, {0});
  table.Apply(*adagrad, 0, {2});
  EXPECT_THAT(table.value, ElementsAre(-.5f));
}

TEST(AdagradTest, ParametersOutOfRangeAreNamed) {
  job::Adagrad spec;
  spec.set_initial_accumulator_value(-.1);
  EXPECT_THAT(MakeAdagrad(spec, /*schedule=*/{}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("adagrad.initial_accumulator_value is -0.1")));
}

}  // namespace
}  // namespace parasol
