// A user's optimizer as the owners of variables and tables use it.

#include "ml/optimizer/custom_optimizer.h"

#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/optimizer/apply.h"
#include "ml/optimizer/assigned/optimizer_of.h"
#include "ml/optimizer/testing/update_cases.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Heavy-ball momentum that also counts updates:
//   m = .5·m + g;  w = w - rate·m;  n = n + 1
class HeavyBall : public CustomUpdate {
 public:
  std::vector<Slot> slots() const override {
    return {{.name = "m"}, {.name = "n", .initial_value = 1}};
  }
  void Apply(const Step& step, const Elements& elements) const override {
    const auto rate = static_cast<float>(step.learning_rate);
    for (size_t i = 0; i < elements.count; ++i) {
      float& m = elements.slots[0][i];
      m = .5f * m + elements.gradient[i];
      elements.value[i] -= rate * m;
      elements.slots[1][i] += 1;
    }
  }
};

absl::StatusOr<std::unique_ptr<const CustomUpdate>> MakeHeavyBall(
    const job::CustomOptimizer& spec) {
  if (spec.parameter_size() > 0) {
    return absl::InvalidArgumentError("it has no parameters");
  }
  return std::make_unique<HeavyBall>();
}

const CustomOptimizerRegistration kRegistration("heavy_ball", MakeHeavyBall);

constexpr char kHeavyBall[] =
    "custom { type: 'heavy_ball' learning_rate: .25 slot { name: 'm' } "
    "  slot { name: 'n' initial_value: 1 } } ";

std::unique_ptr<const Optimizer> Make(const std::string& text) {
  auto made = MakeVariableOptimizer(ParseOptimizer(text));
  EXPECT_OK(made);
  return *std::move(made);
}

TEST(CustomOptimizerTest, UpdatesValuesAndSlotsByTheSchedule) {
  const auto optimizer = Make(std::string(kHeavyBall) +
                              "learning_rate_schedule { "
                              "piecewise_constant_decay { boundary: 0 "
                              "value: .5 } }");
  EXPECT_OK(optimizer->CheckCode());
  EXPECT_THAT(optimizer->slot_names(), ElementsAre("m", "n"));
  EXPECT_EQ(optimizer->InitialSlotValue(0), 0);
  EXPECT_EQ(optimizer->InitialSlotValue(1), 1);
  std::vector<float> values = {1, 2}, m(2), n(2, 1);
  float* const slots[] = {m.data(), n.data()};
  for (int64_t step = 0; step < 2; ++step) {
    ASSERT_OK(ApplyDense(*optimizer, step, std::vector<float>{4, 8},
                         {.values = absl::MakeSpan(values), .slots = slots}));
  }
  EXPECT_THAT(m, ElementsAre(6, 12));
  EXPECT_THAT(n, ElementsAre(3, 3));
  // 1 - .25 · 4 - .5 · 6
  EXPECT_THAT(values, ElementsAre(-3, -6));
}

// As a ps has it: the gradient in a message, and a pull that still reads the
// values of before.
TEST(CustomOptimizerTest, TakesGradientsAtAnyAlignmentAndMovesValues) {
  constexpr size_t kSize = 3000;  // several pieces
  const auto optimizer = Make(kHeavyBall);
  const std::vector<float> gradient = DrawValues(kSize, 1);
  std::vector<std::byte> message(kSize * sizeof(float) + 1);
  std::memcpy(&message[1], gradient.data(), kSize * sizeof(float));
  const std::vector<float> before = DrawValues(kSize, 2);
  std::vector<float> after(kSize), m(kSize), n(kSize, 1);
  float* const slots[] = {m.data(), n.data()};
  const std::vector<float> kept = before;
  optimizer->Apply(0, {.count = kSize,
                       .gradient = &message[1],
                       .value = before.data(),
                       .new_value = after.data(),
                       .slots = slots});
  EXPECT_EQ(before, kept);
  EXPECT_EQ(m, gradient);
  for (size_t i = 0; i < kSize; ++i) {
    ASSERT_EQ(after[i], before[i] - .25f * gradient[i]) << i;
  }
}

TEST(CustomOptimizerTest, UpdatesTheRowsThatAGradientHas) {
  const auto optimizer = Make(kHeavyBall);
  std::vector<float> values = {1, 1, 2, 2, 3, 3}, m(6), n(6, 1);
  float* const slots[] = {m.data(), n.data()};
  ASSERT_OK(ApplySparse(
      *optimizer, 0, std::vector<int64_t>{2, 0},
      std::vector<float>{4, 8, 12, 16},
      {.values = absl::MakeSpan(values), .slots = slots, .width = 2}));
  EXPECT_THAT(values, ElementsAre(-2, -3, 2, 2, 2, 1));
  EXPECT_THAT(n, ElementsAre(2, 2, 1, 1, 2, 2));
}

TEST(CustomOptimizerTest, HasFactorsOfTheRateAndAnAverage) {
  job::Optimizer spec = ParseOptimizer(kHeavyBall);
  EXPECT_EQ(WithRateTimes(2, spec).custom().learning_rate(), .5);
  const auto averaged = Make(std::string(kHeavyBall) + "ema {}");
  EXPECT_THAT(averaged->slot_names(), ElementsAre("m", "n", "average"));
  EXPECT_OK(averaged->CheckCode());
}

TEST(CustomOptimizerTest, WithoutItsCodeOnlyTheSlotsAreKnown) {
  const auto optimizer = Make(
      "custom { type: 'elsewhere' slot { name: 'v' initial_value: 3 } } "
      "ema {}");
  EXPECT_THAT(optimizer->slot_names(), ElementsAre("v", "average"));
  EXPECT_EQ(optimizer->InitialSlotValue(0), 3);
  EXPECT_THAT(optimizer->CheckCode(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("no custom optimizer \"elsewhere\""),
                             HasSubstr("(it has: heavy_ball)"),
                             HasSubstr("as ps and as worker"))));
}

TEST(CustomOptimizerTest, WhatCannotBeIsNamed) {
  struct Case {
    std::string custom;
    std::string message;
  };
  const Case cases[] = {
      {"", "custom.type is not set"},
      {"type: 'a' learning_rate: -1", "custom.learning_rate is -1"},
      {"type: 'a' slot { name: '' }", "custom.slot[0].name is \"\""},
      {"type: 'a' slot { name: 'average' }", "is \"average\""},
      {"type: 'a' slot { name: 'm' } slot { name: 'm' }",
       "custom.slot[1].name is m; it must differ"},
      {"type: 'a' slot { name: 'm' initial_value: inf }",
       "custom.slot[0].initial_value is inf"},
      {"type: 'heavy_ball' slot { name: 'm' }",
       "custom.slot declares m = 0; \"heavy_ball\" has m = 0, n = 1"},
      {"type: 'heavy_ball' slot { name: 'm' } slot { name: 'n' }",
       "custom.slot declares m = 0, n = 0"},
      {"type: 'heavy_ball' parameter { name: 'x' }",
       "custom \"heavy_ball\": it has no parameters"}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.custom);
    EXPECT_THAT(
        MakeVariableOptimizer(ParseOptimizer("custom { " + c.custom + " }")),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.message)));
  }
}

}  // namespace
}  // namespace parasol
