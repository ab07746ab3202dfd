#include "ml/optimizer/adadelta.h"

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

TEST(AdadeltaTest, AStepIsOfTheSizeOfTheLastOnes) {
  job::Adadelta spec;
  spec.set_learning_rate(1);
  spec.set_rho(.75);
  ASSERT_OK_AND_ASSIGN(const auto adadelta,
                       MakeAdadelta(spec, /*schedule=*/{}));
  EXPECT_THAT(adadelta->slot_names(), ElementsAre("accum_grad", "accum_var"));
  TestTable table(*adadelta, {0});
  table.slots[1] = {16};
  table.Apply(*adadelta, 0, {4});  // a = 4: u = 4 / 2 * 4
  EXPECT_THAT(table.slots[0], ElementsAre(4));
  EXPECT_THAT(table.value, ElementsAre(FloatNear(-8, 1e-6f)));
  EXPECT_THAT(table.slots[1], ElementsAre(FloatNear(28, 1e-5f)));
}

TEST(AdadeltaTest, StartsWithTheRootOfEpsilon) {
  job::Adadelta spec;
  spec.set_epsilon(.01);
  spec.set_rho(0);
  spec.set_learning_rate(1);
  ASSERT_OK_AND_ASSIGN(const auto adadelta,
                       MakeAdadelta(spec, /*schedule=*/{}));
  TestTable table(*adadelta, {0});
  table.Apply(*adadelta, 0, {1000});
  EXPECT_THAT(table.value, ElementsAre(FloatEq(-.1f)));
}

TEST(AdadeltaTest, ParametersOutOfRangeAreNamed) {
  job::Adadelta spec;
  spec.set_epsilon(-1);
  EXPECT_THAT(MakeAdadelta(spec, /*schedule=*/{}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("adadelta.epsilon is -1")));
}

}  // namespace
}  // namespace parasol
