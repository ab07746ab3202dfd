#include "ml/optimizer/adamax.h"

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

TEST(AdamaxTest, FirstStepIsTheLearningRateWhateverTheGradient) {
  ASSERT_OK_AND_ASSIGN(const auto adamax,
                       MakeAdamax(job::Adamax(), /*schedule=*/{}));
  EXPECT_THAT(adamax->slot_names(), ElementsAre("m", "v"));
  TestTable table(*adamax, {0, 0});
  table.Apply(*adamax, 0, {5, -800});
  EXPECT_THAT(table.value,
              ElementsAre(FloatNear(-.001f, 1e-8f), FloatNear(.001f, 1e-8f)));
}

TEST(AdamaxTest, RemembersTheLargestGradientWhileItDecays) {
  job::Adamax spec;
  spec.set_beta_2(.5);
  ASSERT_OK_AND_ASSIGN(const auto adamax, MakeAdamax(spec, /*schedule=*/{}));
  TestTable table(*adamax, {0});
  table.Apply(*adamax, 0, {-8});
  table.Apply(*adamax, 1, {1});
  EXPECT_THAT(table.slots[1], ElementsAre(FloatEq(4)));
  table.Apply(*adamax, 2, {3});
  EXPECT_THAT(table.slots[1], ElementsAre(3));
}

TEST(AdamaxTest, ParametersOutOfRangeAreNamed) {
  job::Adamax spec;
  spec.set_beta_1(1);
  EXPECT_THAT(MakeAdamax(spec, /*schedule=*/{}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("adamax.beta_1 is 1")));
}

}  // namespace
}  // namespace parasol
