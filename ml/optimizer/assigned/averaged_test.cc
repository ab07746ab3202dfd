#include "ml/optimizer/assigned/averaged.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/optimizer/apply.h"
#include "ml/optimizer/assigned/optimizer_of.h"
#include "ml/optimizer/testing/update_cases.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

constexpr size_t kSize = 70;
constexpr int64_t kSteps = 5;

// The arrays of one variable: its values, then the slots.
std::vector<std::vector<float>> Arrays(const Optimizer& optimizer) {
  std::vector<std::vector<float>> arrays = {DrawValues(kSize, 1)};
  for (size_t i = 0; i < optimizer.slot_names().size(); ++i) {
    arrays.emplace_back(kSize, optimizer.InitialSlotValue(i));
  }
  return arrays;
}

void Update(const Optimizer& optimizer, int64_t step,
            std::vector<std::vector<float>>& arrays) {
  std::vector<float*> slots;
  for (size_t i = 1; i < arrays.size(); ++i) slots.push_back(arrays[i].data());
  ASSERT_OK(ApplyDense(optimizer, step, DrawValues(kSize, 100 + step),
                       {.values = absl::MakeSpan(arrays[0]), .slots = slots}));
}

TEST(AveragedTest, EveryOptimizerHasItsOwnBitsAndTheAverageOfThem) {
  for (const std::string& text : OptimizersWithBitsOfTheCpu()) {
    SCOPED_TRACE(text);
    const job::Optimizer spec = ParseOptimizer(text);
    job::Optimizer with_ema = spec;
    with_ema.mutable_ema()->set_decay(.75);
    ASSERT_OK_AND_ASSIGN(const auto plain, MakeVariableOptimizer(spec));
    ASSERT_OK_AND_ASSIGN(const auto averaged, MakeVariableOptimizer(with_ema));
    ASSERT_EQ(averaged->slot_names().size(), plain->slot_names().size() + 1);
    EXPECT_EQ(averaged->slot_names().back(), "average");
    std::vector<std::vector<float>> want = Arrays(*plain);
    std::vector<std::vector<float>> got = Arrays(*averaged);
    std::vector<float> average;
    for (int64_t step = 0; step < kSteps; ++step) {
      Update(*plain, step, want);
      Update(*averaged, step, got);
      if (average.empty()) {
        average = want[0];
        continue;
      }
      for (size_t i = 0; i < kSize; ++i) {
        average[i] = .75f * average[i] + .25f * want[0][i];
      }
    }
    EXPECT_EQ(got.back(), average);
    got.pop_back();
    EXPECT_EQ(got, want);
  }
}

TEST(AveragedTest, RowsHaveAveragesToo) {
  ASSERT_OK_AND_ASSIGN(
      const auto averaged,
      MakeVariableOptimizer(ParseOptimizer(
          "sgd { learning_rate: .5 momentum: .5 } ema { decay: .75 }")));
  std::vector<float> row = {1, 2, 0, 0, 0, 0};  // w, momentum, average
  const std::vector<float> gradient = {1, -1};
  float* const rows[] = {row.data()};
  for (const int64_t step : {0, 1}) {
    averaged->ApplyRows(
        step, {.count = 1,
               .width = 2,
               .gradients = reinterpret_cast<const std::byte*>(gradient.data()),
               .rows = rows});
  }
  EXPECT_THAT(row,
              testing::ElementsAre(-.25, 3.25, -.75, .75, .75 * .5 + .25 * -.25,
                                   .75 * 2.5 + .25 * 3.25));
}

TEST(AveragedTest, ADecayOutOfRangeIsSaid) {
  for (const char* const decay : {"1", "-.1", "nan", "2"}) {
    EXPECT_THAT(
        MakeVariableOptimizer(
            ParseOptimizer(std::string("sgd {} ema { decay: ") + decay + " }")),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("ema.decay is")))
        << decay;
  }
  job::Ema ema;
  FillDefaults(ema);
  EXPECT_EQ(ema.decay(), .99);
}

}  // namespace
}  // namespace parasol
