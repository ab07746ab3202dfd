#include "ml/optimizer/ftrl.h"

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ml/optimizer/optimizer.h"
#include "ml/optimizer/testing/plain_table.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

struct Case {
  int steps;
  std::string options;
  std::vector<float> initial;
  std::vector<float> want;
};

// Literals of Keras's own tests.
TEST(FtrlTest, StepsAreThoseOfKerasTests) {
  const Case cases[] = {
      {3, "", {0, 0, 0, 0}, {-2.60260963, -4.29698515, -.28432083, -.56694895}},
      {3, "", {1, 2, 4, 3}, {-2.55607247, -3.98729396, -.28232238, -.56096673}},
      {10,
       "l1_regularization_strength: .001",
       {1, 2, 4, 3},
       {-7.66718769, -10.91273689, -.93460727, -1.86147261}},
      {10,
       "l1_regularization_strength: .001 l2_regularization_strength: 2",
       {1, 2, 4, 3},
       {-.24059935, -.46829352, -.02406147, -.04830509}},
      {10,
       "l1_regularization_strength: .001 l2_regularization_strength: 2 "
       "l2_shrinkage_regularization_strength: .1",
       {1, 2, 4, 3},
       {-.22578995, -.44345796, -.14378493, -.13229476}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.options);
    job::Ftrl spec;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
        "learning_rate: 3 " + c.options, &spec));
    ASSERT_OK_AND_ASSIGN(const auto ftrl, MakeFtrl(spec, /*schedule=*/{}));
    TestTable table(*ftrl, c.initial);
    for (int step = 0; step < c.steps; ++step) {
      table.Apply(*ftrl, step, {.1f, .2f, .01f, .02f});
    }
    EXPECT_THAT(table.value, Pointwise(FloatNear(2e-6f), c.want));
  }
}

TEST(FtrlTest, AWeightWithinL1IsZero) {
  job::Ftrl spec;
  spec.set_l1_regularization_strength(1);
  ASSERT_OK_AND_ASSIGN(const auto ftrl, MakeFtrl(spec, /*schedule=*/{}));
  EXPECT_THAT(ftrl->slot_names(), ElementsAre("accumulator", "linear"));
  TestTable table(*ftrl, {0, 0});
  table.Apply(*ftrl, 0, {.99f, -.99f});
  EXPECT_THAT(table.value, ElementsAre(0, 0));
}

TEST(FtrlTest, TheFastPathIsThePowerOfAHalf) {
  job::Ftrl half;
  job::Ftrl nearly;
  nearly.set_learning_rate_power(std::nextafter(-.5f, 0.f));
  ASSERT_OK_AND_ASSIGN(const auto fast, MakeFtrl(half, /*schedule=*/{}));
  ASSERT_OK_AND_ASSIGN(const auto general, MakeFtrl(nearly, /*schedule=*/{}));
  TestTable want(*fast, {1, -2});
  TestTable got(*general, {1, -2});
  for (int step = 0; step < 5; ++step) {
    want.Apply(*fast, step, {.5f, .7f});
    got.Apply(*general, step, {.5f, .7f});
  }
  EXPECT_THAT(got.value, Pointwise(FloatNear(1e-5f), want.value));
}

TEST(FtrlTest, ARateOfZeroChangesNothing) {
  job::LearningRateSchedule schedule;
  schedule.mutable_cosine_decay()->set_decay_steps(2);
  ASSERT_OK_AND_ASSIGN(const auto ftrl, MakeFtrl(job::Ftrl(), schedule));
  TestTable table(*ftrl, {1, 2});
  table.Apply(*ftrl, 0, {.1f, -.2f});
  const TestTable before = table;
  for (int step = 2; step < 5; ++step) table.Apply(*ftrl, step, {.1f, -.2f});
  EXPECT_EQ(table.value, before.value);
  EXPECT_EQ(table.slots, before.slots);
}

TEST(FtrlTest, ParametersOutOfRangeAreNamed) {
  job::Ftrl spec;
  spec.set_learning_rate_power(.5);
  EXPECT_THAT(MakeFtrl(spec, /*schedule=*/{}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("ftrl.learning_rate_power is 0.5")));
  spec.clear_learning_rate_power();
  spec.set_learning_rate(0);
  EXPECT_THAT(MakeFtrl(spec, /*schedule=*/{}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("ftrl.learning_rate is 0")));
}

}  // namespace
}  // namespace parasol
