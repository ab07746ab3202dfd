#include "ml/optimizer/adagrad.h"

#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/optimizer/apply.h"
#include "ml/optimizer/optimizer.h"
#include "ml/optimizer/simd_level.h"
#include "ml/optimizer/testing/plain_table.h"
#include "ml/optimizer/testing/update_cases.h"
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

constexpr size_t kWidths[] = {1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 64, 100};

std::unique_ptr<const Optimizer> Make(const std::string& fields) {
  auto optimizer =
      MakeOptimizer(ParseOptimizer("rowwise_adagrad { " + fields + " }"));
  EXPECT_OK(optimizer);
  return *std::move(optimizer);
}

const std::byte* Bytes(const float* values) {
  return reinterpret_cast<const std::byte*>(values);
}

// Applies a gradient to one row, which is its values and its accumulator.
void ApplyRow(const Optimizer& optimizer, const std::vector<float>& gradient,
              std::vector<float>& row) {
  float* const place = row.data();
  optimizer.ApplyRows(0, {.count = 1,
                          .width = gradient.size(),
                          .gradients = Bytes(gradient.data()),
                          .rows = &place});
}

// FBGEMM's formula, in float64.
void ApplyFormula(const std::vector<float>& gradient, double rate,
                  double epsilon, std::vector<double>& row) {
  double squares = 0;
  for (const double g : gradient) squares += g * g;
  double& accumulator = row.back();
  accumulator += squares / static_cast<double>(gradient.size());
  const double multiplier = rate / (std::sqrt(accumulator) + epsilon);
  for (size_t i = 0; i < gradient.size(); ++i) {
    row[i] -= multiplier * gradient[i];
  }
}

TEST(RowwiseAdagradTest, ARowHasOneAccumulatorBehindItsValues) {
  const auto optimizer = Make("initial_accumulator_value: .5");
  EXPECT_THAT(optimizer->slot_names(), ElementsAre("row_accumulator"));
  EXPECT_EQ(optimizer->SlotWidth(0, 16), 1u);
  EXPECT_EQ(optimizer->FloatsOfRow(16), 17u);
  std::vector<float> row(5, 7);
  optimizer->FillSlots(4, row.data());
  EXPECT_THAT(row, ElementsAre(7, 7, 7, 7, .5));
  EXPECT_EQ(optimizer->other_rows(), Optimizer::OtherRows::kUntouched);
}

TEST(RowwiseAdagradTest, TheAccumulatorGrowsByTheMeanOfTheSquares) {
  const auto optimizer = Make("learning_rate: 1 epsilon: 1e-30");
  std::vector<float> row = {0, 0, 0};
  ApplyRow(*optimizer, {1, 7}, row);
  // The mean of 1 and 49 is 25.
  EXPECT_THAT(row, ElementsAre(-.2f, -1.4f, 25));
}

// A row that has had no gradient but zeros does not move, nor divide by 0.
TEST(RowwiseAdagradTest, AGradientOfZerosChangesNothing) {
  std::vector<float> row = {1, 2, 0};
  ApplyRow(*Make(""), {0, 0}, row);
  EXPECT_THAT(row, ElementsAre(1, 2, 0));
}

TEST(RowwiseAdagradTest, RowsFollowTheFormulaInFloat64) {
  for (const size_t width : kWidths) {
    SCOPED_TRACE(width);
    const auto optimizer =
        Make("learning_rate: .05 initial_accumulator_value: .1 epsilon: 1e-3");
    std::vector<float> row = DrawValues(width, 1);
    std::vector<double> want(row.begin(), row.end());
    row.push_back(.1f);
    want.push_back(.1);
    for (int step = 0; step < 20; ++step) {
      const std::vector<float> gradient = DrawValues(width, 2 + step);
      ApplyRow(*optimizer, gradient, row);
      ApplyFormula(gradient, .05, 1e-3, want);
    }
    for (size_t i = 0; i <= width; ++i) {
      EXPECT_NEAR(row[i], want[i], 2e-6 * (1 + std::abs(want[i]))) << i;
    }
  }
}

TEST(RowwiseAdagradTest, EveryMachineGivesTheSameBits) {
  const auto optimizer = Make("");
  for (const size_t width : kWidths) {
    SCOPED_TRACE(width);
    const auto run = [&] {
      std::vector<float> row = DrawValues(width, 1);
      row.push_back(0);
      for (int step = 0; step < 5; ++step) {
        ApplyRow(*optimizer, DrawValues(width, 2 + step), row);
      }
      return row;
    };
    const std::vector<float> want = run();
    for (const SimdLevel level : {SimdLevel::kBaseline, SimdLevel::kAvx2}) {
      LimitSimdLevel(level);
      EXPECT_EQ(run(), want);
    }
    LimitSimdLevel(SimdLevel::kAvx512);
  }
}

// Nothing but the elements of its own row is read, and the gradients lie at any
// byte and in any order.
TEST(RowwiseAdagradTest, ARowDependsOnItsOwnGradientAlone) {
  const auto optimizer = Make("");
  for (const size_t width : kWidths) {
    SCOPED_TRACE(width);
    constexpr size_t kRows = 9;
    std::vector<std::vector<float>> rows, want;
    std::vector<std::byte> bytes(kRows * width * sizeof(float) + 1);
    std::vector<const std::byte*> gradient_of;
    std::vector<float*> places;
    for (size_t i = 0; i < kRows; ++i) {
      rows.push_back(DrawValues(width, i));
      rows.back().push_back(0);
      want.push_back(rows.back());
      const std::vector<float> gradient = DrawValues(width, 50 + i);
      ApplyRow(*optimizer, gradient, want.back());
      std::byte* const place =
          bytes.data() + 1 + (kRows - 1 - i) * width * sizeof(float);
      std::memcpy(place, gradient.data(), width * sizeof(float));
      gradient_of.push_back(place);
    }
    for (std::vector<float>& row : rows) places.push_back(row.data());
    optimizer->ApplyRows(0, {.count = kRows,
                             .width = width,
                             .gradient_of = gradient_of.data(),
                             .rows = places.data()});
    EXPECT_EQ(rows, want);
  }
}

TEST(RowwiseAdagradTest, ARowThatComesTwiceIsUpdatedOnceByTheSum) {
  const auto optimizer = Make("learning_rate: 1 epsilon: 1e-30");
  std::vector<float> values(6), slot(3);
  float* const slots[] = {slot.data()};
  ASSERT_OK(ApplySparse(
      *optimizer, 0, {2, 0, 2}, {1, 1, 3, 4, 2, 2},
      {.values = absl::MakeSpan(values), .slots = slots, .width = 2}));
  // Row 2 has (3, 3), whose squares have the mean 9.
  EXPECT_THAT(slot, ElementsAre(12.5, 0, 9));
  EXPECT_THAT(values, ElementsAre(-3 / std::sqrt(12.5f), -4 / std::sqrt(12.5f),
                                  0, 0, -1, -1));
}

TEST(RowwiseAdagradTest, ADenseGradientIsRefused) {
  const auto optimizer = Make("");
  std::vector<float> values(6), slot(3);
  float* const slots[] = {slot.data()};
  EXPECT_THAT(
      ApplyDense(
          *optimizer, 0, std::vector<float>(6),
          {.values = absl::MakeSpan(values), .slots = slots, .width = 2}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("slot row_accumulator is one element for each row")));
}

// A sum of squares that is no float32 any more ends the row's training, as in
// FBGEMM, but nothing else.
TEST(RowwiseAdagradTest, ASumThatOverflowsStopsTheRow) {
  const float large = std::numeric_limits<float>::max();
  std::vector<float> row = {1, 2, 0};
  ApplyRow(*Make(""), {large, 1}, row);
  EXPECT_THAT(row, ElementsAre(1, 2, std::numeric_limits<float>::infinity()));
}

TEST(RowwiseAdagradTest, NumbersOutOfRangeAreNamed) {
  for (const std::string fields :
       {"learning_rate: -1", "initial_accumulator_value: -1", "epsilon: 0",
        "epsilon: nan"}) {
    EXPECT_THAT(
        MakeOptimizer(ParseOptimizer("rowwise_adagrad { " + fields + " }")),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 HasSubstr("rowwise_adagrad." +
                           fields.substr(0, fields.find(':')) + " is ")))
        << fields;
  }
}

}  // namespace
}  // namespace parasol
