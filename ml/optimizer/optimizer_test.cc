#include "ml/optimizer/optimizer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/status_matchers.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ml/optimizer/simd_level.h"
#include "ml/optimizer/testing/plain_table.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

std::unique_ptr<const Optimizer> Make(const std::string& textproto) {
  job::Optimizer spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(textproto, &spec));
  auto optimizer = MakeOptimizer(spec);
  EXPECT_OK(optimizer);
  return *std::move(optimizer);
}

TEST(MakeOptimizerTest, NoneChosenIsInvalid) {
  EXPECT_THAT(MakeOptimizer(job::Optimizer()),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(MakeOptimizerTest, EachFollowsTheScheduleByTheUpdatesDone) {
  const std::string schedule =
      " learning_rate_schedule { piecewise_constant_decay { boundary: 4 "
      "value: .1 } }";
  for (const std::string kind :
       {"sgd { learning_rate: 1 }", "sgd { learning_rate: 1 momentum: .5 }",
        "adagrad { learning_rate: 1 }", "adam { learning_rate: 1 }",
        "adam { learning_rate: 1 amsgrad: true }",
        "lazy_adam { learning_rate: 1 }", "rmsprop { learning_rate: 1 }",
        "rmsprop { learning_rate: 1 momentum: .5 centered: true }",
        "adadelta { learning_rate: 1 }", "adamax { learning_rate: 1 }",
        "nadam { learning_rate: 1 }", "ftrl { learning_rate: 1 }",
        "adamw { learning_rate: 1 }", "lion { learning_rate: 1 }",
        "lamb { learning_rate: 1 exclude_from_layer_adaptation: '' }",
        "lamb { learning_rate: 1 }", "rowwise_adagrad { learning_rate: 1 }"}) {
    SCOPED_TRACE(kind);
    const auto constant = Make(kind);
    const auto scheduled = Make(kind + schedule);
    const auto step_at = [](const Optimizer& optimizer, int64_t iterations) {
      TestTable table(optimizer, {0});
      table.Apply(optimizer, iterations, {1});
      return table.value[0];
    };
    EXPECT_EQ(step_at(*scheduled, 4), step_at(*constant, 4));
    EXPECT_FLOAT_EQ(step_at(*scheduled, 5), .1f * step_at(*constant, 5));
  }
}

TEST(MakeOptimizerTest, AScheduleOutOfRangeIsInvalid) {
  job::Optimizer spec;
  spec.mutable_sgd();
  spec.mutable_learning_rate_schedule()->mutable_cosine_decay();
  EXPECT_THAT(MakeOptimizer(spec),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

// ---- What must not change a bit. ----

// Optimizers that update each element by itself; lamb_test.cc has the other.
class OptimizerBitsTest : public testing::TestWithParam<std::string> {
 protected:
  static constexpr int kSteps = 3;

  OptimizerBitsTest() : optimizer_(Make(GetParam())) {}

  // Not a multiple of any vector's width.
  static constexpr size_t kElements = 1003;

  static std::vector<float> Draw(unsigned seed) {
    std::mt19937 random(seed);
    std::vector<float> values(kElements);
    for (float& value : values) {
      value = static_cast<float>(random()) / 4e9f - .5f;
    }
    return values;
  }

  TestTable Initial() const { return TestTable(*optimizer_, Draw(0)); }

  // Rows as a sparse table keeps them: each with its slots behind it.
  std::vector<std::vector<float>> Rows(const TestTable& table,
                                       size_t width) const {
    std::vector<std::vector<float>> rows;
    for (size_t first = 0; first + width <= kElements; first += width) {
      const auto append = [&](const std::vector<float>& array) {
        rows.back().insert(rows.back().end(), array.begin() + first,
                           array.begin() + first + width);
      };
      rows.emplace_back();
      append(table.value);
      for (const std::vector<float>& slot : table.slots) append(slot);
    }
    return rows;
  }

  static std::vector<float*> PointersTo(std::vector<std::vector<float>>& rows) {
    std::vector<float*> pointers;
    for (std::vector<float>& row : rows) pointers.push_back(row.data());
    return pointers;
  }

  TestTable InPlace() const {
    TestTable table = Initial();
    for (int step = 0; step < kSteps; ++step) {
      table.Apply(*optimizer_, step, Draw(step + 1));
    }
    return table;
  }

  static void ExpectSameBits(const TestTable& got, const TestTable& want) {
    const auto same = [](const std::vector<float>& a,
                         const std::vector<float>& b) {
      return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
    };
    EXPECT_TRUE(same(got.value, want.value));
    for (size_t s = 0; s < want.slots.size(); ++s) {
      EXPECT_TRUE(same(got.slots[s], want.slots[s])) << "slot " << s;
    }
  }

  const std::unique_ptr<const Optimizer> optimizer_;
};

TEST_P(OptimizerBitsTest, IntoAnotherArrayIsTheSameAndLeavesTheOldOne) {
  TestTable table = Initial();
  for (int step = 0; step < kSteps; ++step) {
    const std::vector<float> gradient = Draw(step + 1);
    const std::vector<float> before = table.value;
    std::vector<float> after(kElements);
    const std::vector<float*> slots = table.SlotsAt(0);
    optimizer_->Apply(
        step, {.count = kElements,
               .gradient = reinterpret_cast<const std::byte*>(gradient.data()),
               .value = table.value.data(),
               .new_value = after.data(),
               .slots = slots});
    EXPECT_EQ(table.value, before);
    table.value = after;
  }
  ExpectSameBits(table, InPlace());
}

TEST_P(OptimizerBitsTest, GradientMayStartAtAnyByte) {
  for (size_t offset = 1; offset < sizeof(float); ++offset) {
    TestTable table = Initial();
    for (int step = 0; step < kSteps; ++step) {
      const std::vector<float> gradient = Draw(step + 1);
      std::vector<std::byte> bytes(kElements * sizeof(float) + offset);
      std::memcpy(bytes.data() + offset, gradient.data(),
                  kElements * sizeof(float));
      const std::vector<float*> slots = table.SlotsAt(0);
      optimizer_->Apply(step, {.count = kElements,
                               .gradient = bytes.data() + offset,
                               .value = table.value.data(),
                               .new_value = table.value.data(),
                               .slots = slots});
    }
    ExpectSameBits(table, InPlace());
  }
}

TEST_P(OptimizerBitsTest, PiecesGiveWhatTheWholeGives) {
  for (const size_t piece : {1, 7, 64, 1000}) {
    TestTable table = Initial();
    for (int step = 0; step < kSteps; ++step) {
      const std::vector<float> gradient = Draw(step + 1);
      for (size_t first = 0; first < kElements; first += piece) {
        table.Apply(*optimizer_, step,
                    absl::MakeConstSpan(gradient).subspan(first, piece), first);
      }
    }
    ExpectSameBits(table, InPlace());
  }
}

TEST_P(OptimizerBitsTest, RowsGiveWhatTheWholeGives) {
  for (const size_t width : {1, 3, 4, 16, 20, 37, 64, 501}) {
    SCOPED_TRACE(width);
    std::vector<std::vector<float>> rows = Rows(Initial(), width);
    const std::vector<float*> pointers = PointersTo(rows);
    for (int step = 0; step < kSteps; ++step) {
      const std::vector<float> gradient = Draw(step + 1);
      std::vector<std::byte> bytes(kElements * sizeof(float) + 1);
      std::memcpy(bytes.data() + 1, gradient.data(), kElements * sizeof(float));
      optimizer_->ApplyRows(step, {.count = rows.size(),
                                   .width = width,
                                   .gradients = bytes.data() + 1,
                                   .rows = pointers.data()});
    }
    EXPECT_EQ(rows, Rows(InPlace(), width));
  }
}

TEST_P(OptimizerBitsTest, GradientsOfRowsMayLieInAnyOrder) {
  constexpr size_t kWidth = 3;
  std::vector<std::vector<float>> rows = Rows(Initial(), kWidth);
  const std::vector<float*> pointers = PointersTo(rows);
  for (int step = 0; step < kSteps; ++step) {
    const std::vector<float> gradient = Draw(step + 1);
    // The last row's comes first.
    std::vector<std::byte> bytes(kElements * sizeof(float) + 1);
    std::vector<const std::byte*> gradient_of;
    for (size_t row = 0; row < rows.size(); ++row) {
      const size_t place = (rows.size() - 1 - row) * kWidth * sizeof(float);
      std::memcpy(bytes.data() + 1 + place, gradient.data() + row * kWidth,
                  kWidth * sizeof(float));
      gradient_of.push_back(bytes.data() + 1 + place);
    }
    optimizer_->ApplyRows(step, {.count = rows.size(),
                                 .width = kWidth,
                                 .gradient_of = gradient_of.data(),
                                 .rows = pointers.data()});
  }
  EXPECT_EQ(rows, Rows(InPlace(), kWidth));
}

TEST_P(OptimizerBitsTest, OtherRowsChangeAsByAGradientOfZeroOrNotAtAll) {
  constexpr size_t kWidth = 3;
  TestTable by_zeros = InPlace();
  by_zeros.Apply(*optimizer_, kSteps, std::vector<float>(kElements));
  std::vector<std::vector<float>> want = Rows(InPlace(), kWidth);
  const std::vector<std::vector<float>> all = Rows(by_zeros, kWidth);
  for (size_t i = 0; i < want.size(); ++i) {
    if (optimizer_->other_rows() == Optimizer::OtherRows::kUntouched) break;
    const bool values = optimizer_->other_rows() == Optimizer::OtherRows::kAll;
    std::copy(all[i].begin() + (values ? 0 : kWidth), all[i].end(),
              want[i].begin() + (values ? 0 : kWidth));
  }
  std::vector<std::vector<float>> rows = Rows(InPlace(), kWidth);
  const std::vector<float*> pointers = PointersTo(rows);
  optimizer_->ApplyOtherRows(
      kSteps, {.count = rows.size(), .width = kWidth, .rows = pointers.data()});
  EXPECT_EQ(rows, want);
}

// A checkpoint keeps values, slots and the number of updates.
TEST_P(OptimizerBitsTest, AStepAfterARestoreIsTheStepWithout) {
  TestTable table = InPlace();
  TestTable restored(*optimizer_, table.value);
  restored.slots = table.slots;
  const auto again = Make(GetParam());
  restored.Apply(*again, kSteps, Draw(7));
  table.Apply(*optimizer_, kSteps, Draw(7));
  ExpectSameBits(restored, table);
}

TEST_P(OptimizerBitsTest, EveryMachineGivesTheSame) {
  const TestTable want = InPlace();
  for (const SimdLevel level : {SimdLevel::kBaseline, SimdLevel::kAvx2}) {
    LimitSimdLevel(level);
    ExpectSameBits(InPlace(), want);
  }
  LimitSimdLevel(SimdLevel::kAvx512);
}

// Applies `rule` to element `i`.
template <typename Rule, size_t... I>
void ApplyToElement(const Rule& rule, float gradient, TestTable& table,
                    size_t i, std::index_sequence<I...>) {
  table.value[i] = rule(gradient, table.value[i], table.slots[I][i]...);
}

TEST_P(OptimizerBitsTest, TheRuleIsThatOfTheUpdate) {
  TestTable table = Initial();
  for (int step = 0; step < kSteps; ++step) {
    const std::vector<float> gradient = Draw(step + 1);
    const auto apply = [&]<typename Rule>(const Rule& rule) {
      ASSERT_EQ(Rule::kSlots, table.slots.size());
      for (size_t i = 0; i < kElements; ++i) {
        ApplyToElement(rule, gradient[i], table, i,
                       std::make_index_sequence<Rule::kSlots>());
      }
    };
    std::visit(apply, optimizer_->RuleAt(step));
  }
  ExpectSameBits(table, InPlace());
}

// This file is compiled for any x86-64, which cannot fuse a multiplication and
// an addition; the optimizers' own loops are compiled for machines that can.
TEST(OptimizerTest, EveryMachineRoundsEachOperationOfAdam) {
  const auto adam = Make("adam {}");
  TestTable table(*adam, {1.1f, -.7f, 3.3f});
  TestTable plain = table;
  const std::vector<float> gradient = {.123f, -4.567f, .0089f};
  for (int t = 1; t <= 5; ++t) {
    const float alpha = static_cast<float>(
        .001 * std::sqrt(1 - std::pow(.999, t)) / (1 - std::pow(.9, t)));
    for (size_t i = 0; i < gradient.size(); ++i) {
      float& m = plain.slots[0][i];
      float& v = plain.slots[1][i];
      const float g = gradient[i];
      m = .9f * m + static_cast<float>(1 - .9) * g;
      v = .999f * v + static_cast<float>(1 - .999) * (g * g);
      plain.value[i] -= alpha * m / (std::sqrt(v) + 1e-7f);
    }
    table.Apply(*adam, t - 1, gradient);
  }
  EXPECT_EQ(table.value, plain.value);
  EXPECT_EQ(table.slots, plain.slots);
}

TEST_P(OptimizerBitsTest, NoElementsIsNoUpdate) {
  TestTable table = Initial();
  table.Apply(*optimizer_, 0, {});
  ExpectSameBits(table, Initial());
}

INSTANTIATE_TEST_SUITE_P(
    All, OptimizerBitsTest,
    testing::Values("sgd {}", "sgd { momentum: .9 }",
                    "sgd { momentum: .9 nesterov: true }", "adagrad {}",
                    "adam {}", "adam { amsgrad: true }", "lazy_adam {}",
                    "rmsprop {}", "rmsprop { momentum: .9 }",
                    "rmsprop { centered: true }",
                    "rmsprop { momentum: .9 centered: true }", "adadelta {}",
                    "adamax {}", "nadam {}", "ftrl {}",
                    "ftrl { l1_regularization_strength: .1 beta: .1 }",
                    "ftrl { learning_rate_power: -.7 }", "adamw {}",
                    "adamw { amsgrad: true weight_decay: .1 }", "lion {}",
                    "lion { weight_decay: .1 }",
                    "lamb { exclude_from_layer_adaptation: '' }",
                    "lamb { weight_decay: .1 "
                    "exclude_from_layer_adaptation: '' }"));

}  // namespace
}  // namespace parasol
