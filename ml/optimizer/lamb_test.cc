#include "ml/optimizer/lamb.h"

#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
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

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

job::Lamb Spec(const std::string& fields) {
  return ParseOptimizer("lamb { " + fields + " }").lamb();
}

std::unique_ptr<const Optimizer> MakeFor(const job::Lamb& spec,
                                         const std::string& variable) {
  auto lamb = MakeLamb(LambOf(spec, variable), /*schedule=*/{});
  EXPECT_OK(lamb);
  return *std::move(lamb);
}

// tfa.optimizers.LAMB._resource_apply_dense, in double.
struct Formula {
  double learning_rate, beta_1, beta_2, epsilon, weight_decay;
  bool adapts = true;
  std::vector<double> w, m, v;

  void Apply(int t, const std::vector<float>& g) {
    std::vector<double> u(w.size());
    double norm_w = 0, norm_u = 0;
    for (size_t i = 0; i < w.size(); ++i) {
      m[i] = beta_1 * m[i] + (1 - beta_1) * g[i];
      v[i] = beta_2 * v[i] + (1 - beta_2) * g[i] * g[i];
      u[i] = m[i] / (1 - std::pow(beta_1, t)) /
                 (std::sqrt(v[i] / (1 - std::pow(beta_2, t))) + epsilon) +
             weight_decay * w[i];
      norm_w += w[i] * w[i];
      norm_u += u[i] * u[i];
    }
    double ratio = 1;
    if (adapts && norm_w > 0 && norm_u > 0) {
      ratio = std::sqrt(norm_w) / std::sqrt(norm_u);
    }
    for (size_t i = 0; i < w.size(); ++i) w[i] -= ratio * learning_rate * u[i];
  }
};

TEST(LambTest, IsTheFormulaOfTensorflowAddons) {
  for (const size_t size : {1, 3, 255, 4096, 4097, 10'000}) {
    for (const bool is_excluded : {false, true}) {
      SCOPED_TRACE(size + (is_excluded ? .5 : 0));
      job::Lamb spec = Spec(
          "learning_rate: .02 beta_1: .8 beta_2: .97 epsilon: 1e-3 "
          "weight_decay: .3");
      if (is_excluded) spec.add_exclude_from_weight_decay("bias$");
      const auto lamb = MakeFor(spec, "dense_1/bias");
      EXPECT_EQ(lamb->needs_whole_variable(), !is_excluded);
      EXPECT_THAT(lamb->slot_names(), ElementsAre("m", "v"));
      TestTable table(*lamb, DrawValues(size, 0));
      Formula formula{.learning_rate = .02,
                      .beta_1 = .8,
                      .beta_2 = .97,
                      .epsilon = 1e-3,
                      .weight_decay = is_excluded ? 0 : .3,
                      .adapts = !is_excluded,
                      .w = {table.value.begin(), table.value.end()},
                      .m = std::vector<double>(size),
                      .v = std::vector<double>(size)};
      for (int step = 0; step < 20; ++step) {
        const std::vector<float> gradient = DrawValues(size, step + 1);
        table.Apply(*lamb, step, gradient);
        formula.Apply(step + 1, gradient);
        for (size_t i = 0; i < size; ++i) {
          ASSERT_NEAR(table.value[i], formula.w[i], 2e-6) << i << " " << step;
          ASSERT_NEAR(table.slots[0][i], formula.m[i], 1e-6);
          ASSERT_NEAR(table.slots[1][i], formula.v[i], 1e-6);
        }
      }
    }
  }
}

// The first step of a constant gradient: every direction is 1.
TEST(LambTest, AStepIsAsLongAsTheVariableTimesTheRate) {
  const auto lamb = MakeFor(Spec("learning_rate: .5 epsilon: 1e-12"), "w");
  TestTable table(*lamb, {3, 4, 0, 0});
  table.Apply(*lamb, 0, {7, 7, 7, 7});
  EXPECT_THAT(
      table.value,
      ElementsAre(testing::FloatEq(3 - 1.25f), testing::FloatEq(4 - 1.25f),
                  testing::FloatEq(-1.25f), testing::FloatEq(-1.25f)));
}

TEST(LambTest, WithoutANormTheRateAloneCounts) {
  const auto lamb = MakeFor(Spec("learning_rate: .5 epsilon: 1e-12"), "w");
  TestTable zeros(*lamb, {0, 0});
  zeros.Apply(*lamb, 0, {2, -2});
  EXPECT_THAT(zeros.value,
              ElementsAre(testing::FloatEq(-.5f), testing::FloatEq(.5f)));
  TestTable no_gradient(*lamb, {1, 2});
  no_gradient.Apply(*lamb, 0, {0, 0});
  EXPECT_THAT(no_gradient.value, ElementsAre(1, 2));
}

// Norms are summed in double: the squares of these are no float32.
TEST(LambTest, LargeAndSmallValuesHaveNorms) {
  const auto lamb = MakeFor(Spec("learning_rate: .5 epsilon: 1e-12"), "w");
  for (const float value : {1e30f, 1e-30f}) {
    TestTable table(*lamb, {value, value});
    table.Apply(*lamb, 0, {1, 1});
    EXPECT_THAT(table.value, Each(testing::FloatEq(.5f * value)));
  }
}

TEST(LambTest, ANanStaysAndSpreadsNoFurtherThanItsElement) {
  const auto lamb = MakeFor(Spec(""), "w");
  TestTable table(*lamb, {1, 1});
  table.Apply(*lamb, 0, {1, std::numeric_limits<float>::quiet_NaN()});
  EXPECT_FALSE(std::isnan(table.value[0]));
  EXPECT_TRUE(std::isnan(table.value[1]));
}

// A sparse gradient of a variable in plain arrays is one of all rows, as in
// TensorFlow Addons: norms are of the whole variable.
TEST(LambTest, ASparseGradientIsOneOfAllRows) {
  const auto lamb = MakeFor(Spec("weight_decay: .1"), "w");
  TestTable dense(*lamb, {1, 2, 3, 4}), sparse = dense;
  dense.Apply(*lamb, 0, {0, 0, 5, 6});
  const std::vector<float*> slots = sparse.SlotsAt(0);
  ASSERT_OK(ApplySparse(
      *lamb, 0, {1}, {5, 6},
      {.values = absl::MakeSpan(sparse.value), .slots = slots, .width = 2}));
  EXPECT_EQ(sparse.value, dense.value);
  EXPECT_EQ(sparse.slots, dense.slots);
}

TEST(LambTest, ExclusionsAreFoundInNames) {
  const job::Lamb spec = Spec(
      "weight_decay: .1 exclude_from_weight_decay: 'normal.*/' "
      "exclude_from_weight_decay: 'bias$' "
      "exclude_from_layer_adaptation: '^logits/'");
  const auto of = [&spec](const std::string& name) {
    const job::Lamb own = LambOf(spec, name);
    EXPECT_THAT(own.exclude_from_weight_decay(), IsEmpty());
    return std::pair(own.weight_decay() > 0,
                     MakeFor(spec, name)->needs_whole_variable());
  };
  EXPECT_EQ(of("dense/kernel"), std::pair(true, true));
  EXPECT_EQ(of("normal_1/gamma"), std::pair(false, true));
  EXPECT_EQ(of("logits/kernel"), std::pair(true, false));
  EXPECT_EQ(of("logits/bias"), std::pair(false, false));
  EXPECT_EQ(of("my_logits/kernel"), std::pair(true, true));
}

TEST(LambTest, WhatDoesNotDecayIsNotAdaptedUnlessSaidOtherwise) {
  const job::Lamb spec =
      Spec("weight_decay: .1 exclude_from_weight_decay: 'bias'");
  EXPECT_FALSE(MakeFor(spec, "dense/bias")->needs_whole_variable());
  EXPECT_TRUE(MakeFor(spec, "dense/kernel")->needs_whole_variable());
  job::Lamb other = spec;
  other.add_exclude_from_layer_adaptation("none");
  EXPECT_TRUE(MakeFor(other, "dense/bias")->needs_whole_variable());
}

// A name that is not known is excluded from nothing but by an empty expression.
TEST(LambTest, WithoutANameItIsForVariablesInNoList) {
  for (const std::string excluded : {"^$", ".*", "bias"}) {
    job::Lamb spec = Spec("weight_decay: .1");
    spec.add_exclude_from_weight_decay(excluded);
    EXPECT_TRUE((*MakeLamb(spec, /*schedule=*/{}))->needs_whole_variable());
  }
  EXPECT_FALSE((*MakeLamb(Spec("exclude_from_layer_adaptation: ''"),
                          /*schedule=*/{}))
                   ->needs_whole_variable());
}

TEST(LambTest, AnOptimizerOfOneVariableIsResolvedOnce) {
  const job::Lamb spec =
      Spec("weight_decay: .1 exclude_from_weight_decay: 'bias'");
  for (const std::string name : {"dense/bias", "dense/kernel"}) {
    const job::Lamb own = LambOf(spec, name);
    EXPECT_EQ(LambOf(own, "x/bias").SerializeAsString(),
              own.SerializeAsString());
  }
}

TEST(LambTest, ParametersOutOfRangeAreNamed) {
  const std::pair<std::string, std::string> cases[] = {
      {"learning_rate: -1", "lamb.learning_rate is -1"},
      {"beta_1: 1", "lamb.beta_1 is 1"},
      {"beta_2: 1.5", "lamb.beta_2 is 1.5"},
      {"epsilon: -1", "lamb.epsilon is -1"},
      {"weight_decay: -2", "lamb.weight_decay is -2"},
      {"exclude_from_layer_adaptation: 'a' "
       "exclude_from_layer_adaptation: '[b'",
       "lamb.exclude_from_layer_adaptation[1] is \"[b\"; it must be"},
      {"exclude_from_weight_decay: '(?=b)'",
       "lamb.exclude_from_weight_decay[0] is \"(?=b)\"; it must be"}};
  for (const auto& [fields, want] : cases) {
    EXPECT_THAT(MakeLamb(Spec(fields), /*schedule=*/{}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(want)));
  }
}

// ---- What must not change a bit, at sizes around a chunk's. ----

class LambBitsTest : public testing::TestWithParam<size_t> {
 protected:
  static constexpr int kSteps = 3;

  TestTable Trained() const {
    TestTable table(*lamb_, DrawValues(GetParam(), 0));
    for (int step = 0; step < kSteps; ++step) {
      table.Apply(*lamb_, step, DrawValues(GetParam(), step + 1));
    }
    return table;
  }

  static void ExpectSameBits(const TestTable& got, const TestTable& want) {
    EXPECT_EQ(got.value, want.value);
    EXPECT_EQ(got.slots, want.slots);
  }

  const std::unique_ptr<const Optimizer> lamb_ =
      MakeFor(Spec("weight_decay: .1"), "w");
};

TEST_P(LambBitsTest, AnotherArrayAndAnyByteAreTheSame) {
  const size_t size = GetParam();
  TestTable table(*lamb_, DrawValues(size, 0));
  for (int step = 0; step < kSteps; ++step) {
    const std::vector<float> gradient = DrawValues(size, step + 1);
    std::vector<std::byte> bytes(size * sizeof(float) + 1);
    std::memcpy(bytes.data() + 1, gradient.data(), size * sizeof(float));
    const std::vector<float> before = table.value;
    std::vector<float> after(size);
    const std::vector<float*> slots = table.SlotsAt(0);
    lamb_->Apply(step, {.count = size,
                        .gradient = bytes.data() + 1,
                        .value = table.value.data(),
                        .new_value = after.data(),
                        .slots = slots});
    EXPECT_EQ(table.value, before);
    table.value = after;
  }
  ExpectSameBits(table, Trained());
}

TEST_P(LambBitsTest, EveryMachineGivesTheSame) {
  const TestTable want = Trained();
  for (const SimdLevel level : {SimdLevel::kBaseline, SimdLevel::kAvx2}) {
    LimitSimdLevel(level);
    ExpectSameBits(Trained(), want);
  }
  LimitSimdLevel(SimdLevel::kAvx512);
}

// The sums have the order of rule/clip.h, which devices keep.
TEST_P(LambBitsTest, SumsAreTakenInLanes) {
  const auto sum = [](const std::vector<double>& terms) {
    std::vector<double> lanes(256);
    for (size_t i = 0; i < terms.size(); ++i) lanes[i % 256] += terms[i];
    for (size_t half = 128; half > 0; half /= 2) {
      for (size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
    }
    return lanes[0];
  };
  const auto squares = [&](const std::vector<float>& values) {
    std::vector<double> chunks;
    for (size_t first = 0; first < values.size(); first += 4096) {
      std::vector<double> terms;
      for (size_t i = first; i < values.size() && i < first + 4096; ++i) {
        terms.push_back(static_cast<double>(values[i]) * values[i]);
      }
      chunks.push_back(sum(terms));
    }
    return sum(chunks);
  };
  TestTable table = Trained(), plain = table;
  const std::vector<float> gradient = DrawValues(GetParam(), 9);
  table.Apply(*lamb_, kSteps, gradient);
  const auto rule = std::get<LambRule>(lamb_->RuleAt(kSteps));
  std::vector<float> directions;
  for (size_t i = 0; i < gradient.size(); ++i) {
    float& m = plain.slots[0][i];
    float& v = plain.slots[1][i];
    rule.Remember(gradient[i], m, v);
    directions.push_back(rule.Direction(plain.value[i], m, v));
  }
  const float factor = rule.Factor(squares(plain.value), squares(directions));
  for (size_t i = 0; i < gradient.size(); ++i) {
    plain.value[i] -= factor * directions[i];
  }
  ExpectSameBits(table, plain);
}

// What has variables in parts must refuse it therefore.
TEST_P(LambBitsTest, PartsDoNotGiveWhatTheWholeGives) {
  if (GetParam() < 2) GTEST_SKIP() << "no parts";
  const std::vector<float> gradient = DrawValues(GetParam(), 9);
  TestTable table = Trained(), whole = table;
  whole.Apply(*lamb_, kSteps, gradient);
  const size_t half = GetParam() / 2;
  table.Apply(*lamb_, kSteps, absl::MakeConstSpan(gradient).first(half));
  table.Apply(*lamb_, kSteps, absl::MakeConstSpan(gradient).subspan(half),
              half);
  EXPECT_NE(table.value, whole.value);
}

TEST_P(LambBitsTest, ARowIsAVariable) {
  const TestTable want = Trained();
  const std::vector<float> initial = DrawValues(GetParam(), 0);
  std::vector<std::vector<float>> rows(2,
                                       std::vector<float>(3 * initial.size()));
  std::vector<float*> pointers;
  for (std::vector<float>& row : rows) {
    std::copy(initial.begin(), initial.end(), row.begin());
    pointers.push_back(row.data());
  }
  for (int step = 0; step < kSteps; ++step) {
    std::vector<float> gradients = DrawValues(GetParam(), step + 1);
    gradients.resize(2 * GetParam());  // zeros for the other row
    lamb_->ApplyRows(
        step,
        {.count = 2,
         .width = GetParam(),
         .gradients = reinterpret_cast<const std::byte*>(gradients.data()),
         .rows = pointers.data()});
  }
  EXPECT_EQ(absl::MakeConstSpan(rows[0]).first(initial.size()),
            absl::MakeConstSpan(want.value));
  EXPECT_NE(rows[0], rows[1]);
}

INSTANTIATE_TEST_SUITE_P(Sizes, LambBitsTest,
                         testing::Values(1, 7, 256, 300, 4095, 4096, 4097,
                                         70'001, 1'100'003));

}  // namespace
}  // namespace parasol
