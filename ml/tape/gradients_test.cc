// The gradients of all kinds of operations, and their gradients, against
// differences of values.

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/tape/kinds.h"
#include "ml/tape/operation.h"
#include "ml/tape/operations.h"
#include "ml/tape/tape.h"

namespace parasol {
namespace {

using ::testing::Contains;

using Tensors = std::vector<Tensor>;

struct Case {
  std::string kind;
  std::function<Tensor(const Tensors&)> f;
  std::vector<TensorShape> shapes;
  float low = -2, high = 2;  // range of the inputs
  bool is_smooth = true;     // has a second derivative everywhere
};

// Numbers that look random, away from each other and from round ones.
Tensor Values(const TensorShape& shape, float low, float high, int salt) {
  std::vector<float> values;
  for (int64_t i = 0; i < shape.size(); ++i) {
    const double share = std::fmod((i + 1 + salt * 17) * 0.6180339887, 1.0);
    values.push_back(static_cast<float>(low + (high - low) * share));
  }
  return Tensor::Of(values, shape);
}

Tensors InputsOf(const Case& c) {
  Tensors inputs;
  for (size_t i = 0; i < c.shapes.size(); ++i) {
    inputs.push_back(Values(c.shapes[i], c.low, c.high, static_cast<int>(i)));
  }
  return inputs;
}

Tensor Weighted(const Tensor& x) {
  return ReduceSum(x * Values(x.shape(), -1, 1, 5));
}

double Dot(const Tensor& x) {
  const Tensor weights = Values(x.shape(), -1, 1, 5);
  double sum = 0;
  for (int64_t i = 0; i < x.size(); ++i) {
    sum += static_cast<double>(x.values()[i]) * weights.values()[i];
  }
  return sum;
}

// Compares gradients with differences of the weighted sum of f's result.
void ExpectDifferences(const std::function<Tensor(const Tensors&)>& f,
                       const Tensors& inputs, const Tensors& gradients,
                       double tolerance) {
  constexpr float kStep = 1e-2f;
  for (size_t input = 0; input < inputs.size(); ++input) {
    ASSERT_OK(gradients[input].status()) << "input " << input;
    ASSERT_EQ(gradients[input].shape(), inputs[input].shape());
    const absl::Span<const float> at = inputs[input].values();
    for (size_t i = 0; i < at.size(); ++i) {
      std::vector<float> beside(at.begin(), at.end());
      Tensors moved = inputs;
      beside[i] = at[i] + kStep;
      const double step_up = static_cast<double>(beside[i]) - at[i];
      moved[input] = Tensor::Of(beside, inputs[input].shape());
      const double above = Dot(f(moved));
      beside[i] = at[i] - kStep;
      const double step_down = static_cast<double>(at[i]) - beside[i];
      moved[input] = Tensor::Of(beside, inputs[input].shape());
      const double slope = (above - Dot(f(moved))) / (step_up + step_down);
      EXPECT_NEAR(gradients[input].values()[i], slope,
                  tolerance * (1 + std::fabs(slope)))
          << "input " << input << ", element " << i;
    }
  }
}

absl::StatusOr<Tensors> GradientsOf(
    const std::function<Tensor(const Tensors&)>& f, const Tensors& inputs) {
  GradientTape tape;
  for (const Tensor& input : inputs) tape.Watch(input);
  const Tensor target = Weighted(f(inputs));
  return tape.Gradient(target, inputs,
                       {.unconnected = GradientTape::Unconnected::kZero});
}

const Tensor& Ids() {
  static const Tensor& ids = *new Tensor(Tensor::Ints({2, 0, -1, 2}, {4}));
  return ids;
}

std::vector<Case> Cases() {
  using S = std::vector<TensorShape>;
  const TensorShape a = {2, 3};
  const S two = {{2, 3}, {2, 3}};
  std::vector<Case> cases = {
      {"add", [](auto& x) { return x[0] + x[1]; }, {{2, 3}, {3}}},
      {"add", [](auto& x) { return x[0] + x[1]; }, {{2, 1, 3}, {4, 1}}},
      {"subtract", [](auto& x) { return x[0] - x[1]; }, {{3}, {2, 3}}},
      {"multiply", [](auto& x) { return x[0] * x[1]; }, {{2, 3}, {2, 1}}},
      {"multiply", [](auto& x) { return x[0] * x[1]; }, {{}, {2, 3}}},
      {"divide", [](auto& x) { return x[0] / x[1]; }, {{2, 3}, {3}}, 1, 3},
      {"maximum", [](auto& x) { return Maximum(x[0], x[1]); }, two, -2, 2,
       false},
      {"minimum",
       [](auto& x) { return Minimum(x[0], x[1]); },
       {{2, 3}, {3}},
       -2,
       2,
       false},
      {"negate", [](auto& x) { return -x[0]; }, {a}},
      {"exp", [](auto& x) { return Exp(x[0]); }, {a}},
      {"log", [](auto& x) { return Log(x[0]); }, {a}, 1, 3},
      {"log1p", [](auto& x) { return Log1p(x[0]); }, {a}, 0, 2},
      {"sqrt", [](auto& x) { return Sqrt(x[0]); }, {a}, 1, 3},
      {"square", [](auto& x) { return Square(x[0]); }, {a}},
      {"power", [](auto& x) { return Power(x[0], 2.5f); }, {a}, 1, 2},
      {"power", [](auto& x) { return Power(x[0], 3); }, {a}},
      {"abs", [](auto& x) { return Abs(x[0]); }, {a}, -2, 2, false},
      {"tanh", [](auto& x) { return Tanh(x[0]); }, {a}},
      {"sigmoid", [](auto& x) { return Sigmoid(x[0]); }, {a}},
      {"relu", [](auto& x) { return Relu(x[0]); }, {a}, -2, 2, false},
      {"softplus", [](auto& x) { return Softplus(x[0]); }, {a}},
      {"clip_by_value",
       [](auto& x) { return ClipByValue(x[0], -1, .8f); },
       {a},
       -2,
       2,
       false},
      {"where",
       [](auto& x) { return Where(Greater(x[0], 0), x[0], Square(x[1])); },
       {{2, 3}, {3}}},
      {"broadcast_to",
       [](auto& x) {
         return BroadcastTo(x[0], {4, 2, 3});
       },
       {{2, 1}}},
      {"reduce_sum", [](auto& x) { return ReduceSum(x[0]); }, {a}},
      {"reduce_sum",
       [](auto& x) {
         return ReduceSum(x[0], {0, 2});
       },
       {{2, 3, 4}}},
      {"reduce_sum",
       [](auto& x) { return ReduceMean(x[0], -1, {.keep_dims = true}); },
       {{2, 3}}},
      {"reduce_max",
       [](auto& x) { return ReduceMax(x[0], 1); },
       {{2, 3, 2}},
       -2,
       2,
       false},
      {"reduce_min",
       [](auto& x) { return ReduceMin(x[0]); },
       {a},
       -2,
       2,
       false},
      {"softmax", [](auto& x) { return Softmax(x[0]); }, {a}},
      {"log_softmax", [](auto& x) { return LogSoftmax(x[0]); }, {a}},
      {"reshape",
       [](auto& x) {
         return Reshape(x[0], {3, -1});
       },
       {a}},
      {"transpose",
       [](auto& x) {
         return TransposeAxes(x[0], {2, 0, 1});
       },
       {{2, 3, 4}}},
      {"concat",
       [](auto& x) {
         return Concat({x[0], x[1], x[0]}, 1);
       },
       {{2, 3}, {2, 1}}},
      {"slice",
       [](auto& x) {
         return Slice(x[0], {0, 1, 1}, {2, 2, -1});
       },
       {{2, 3, 4}}},
      {"gather",
       [](auto& x) {
         return Gather(x[0], Tensor::Ints({2, 0, 2, 2}, {2, 2}));
       },
       {{3, 2}}},
      {"segment_sum",
       [](auto& x) { return SegmentSum(x[0], Ids(), 3); },
       {{4, 2}}},
      // The gradient of a slice.
      {"pad",
       [](auto& x) {
         return Apply(kPad, {x[0]}, {.shape = {3, 4}, .begin = {1, 0}});
       },
       {a}},
      {"cast", [](auto& x) { return Cast(x[0], DType::kFloat32); }, {a}},
  };
  for (const bool left : {false, true}) {
    for (const bool right : {false, true}) {
      const auto product = [left, right](const Tensors& x) {
        return MatMul(x[0], x[1], {.transpose_a = left, .transpose_b = right});
      };
      const TensorShape b = right ? TensorShape{4, 3} : TensorShape{3, 4};
      cases.push_back({"matmul", product, {left ? TensorShape{3, 2} : a, b}});
      cases.push_back(
          {"matmul",
           product,
           {left ? TensorShape{2, 1, 3, 2} : TensorShape{2, 1, 2, 3},
            right ? TensorShape{3, 4, 3} : TensorShape{3, 3, 4}}});
      cases.push_back(
          {"matmul",
           product,
           {left ? TensorShape{2, 3, 2} : TensorShape{2, 2, 3}, b}});
    }
  }
  return cases;
}

TEST(GradientsTest, AreDifferences) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.kind);
    const Tensors inputs = InputsOf(c);
    ASSERT_OK_AND_ASSIGN(const Tensors gradients, GradientsOf(c.f, inputs));
    ExpectDifferences(c.f, inputs, gradients, 2e-3);
  }
}

// The function is bent first, so that no second derivative is 0 by itself.
TEST(GradientsTest, OfGradientsAreDifferences) {
  for (const Case& c : Cases()) {
    if (!c.is_smooth) continue;
    SCOPED_TRACE(c.kind);
    const Tensors inputs = InputsOf(c);
    const auto bent = [&](const Tensors& x) { return Tanh(c.f(x) * .3f); };
    const auto first = [&](const Tensors& x) -> Tensor {
      const auto gradients = GradientsOf(bent, x);
      if (!gradients.ok()) return Tensor::Error(gradients.status());
      Tensors flat;
      for (const Tensor& gradient : *gradients) {
        flat.push_back(Reshape(gradient, {-1}));
      }
      return Concat(flat, 0);
    };
    ASSERT_OK_AND_ASSIGN(const Tensors second, GradientsOf(first, inputs));
    ExpectDifferences(first, inputs, second, 3e-3);
  }
}

struct Flat {
  std::string kind;
  std::function<Tensor(const Tensor&)> f;
};

std::vector<Flat> WithoutGradient() {
  return {
      {"sign", [](auto& x) { return Sign(x); }},
      {"equal", [](auto& x) { return Equal(x, 1); }},
      {"not_equal", [](auto& x) { return NotEqual(x, 1); }},
      {"greater", [](auto& x) { return Greater(x, 1); }},
      {"greater_equal", [](auto& x) { return GreaterEqual(x, 1); }},
      {"less", [](auto& x) { return Less(x, 1); }},
      {"less_equal", [](auto& x) { return LessEqual(x, 1); }},
      {"cast",
       [](auto& x) { return Cast(Cast(x, DType::kInt64), DType::kFloat32); }},
      {"argmax", [](auto& x) { return Cast(ArgMax(x), DType::kFloat32); }},
      {"one_hot", [](auto& x) { return OneHot(ArgMax(x), 3); }},
      {"random_uniform", [](auto& x) { return RandomUniform(x.shape(), {}); }},
      {"random_normal", [](auto& x) { return RandomNormal(x.shape(), {}); }},
      {"random_categorical",
       [](auto& x) {
         return Cast(RandomCategorical(x, 2, {}), DType::kFloat32);
       }},
  };
}

TEST(GradientsTest, StepsGiveNone) {
  for (const Flat& flat : WithoutGradient()) {
    SCOPED_TRACE(flat.kind);
    const Tensor x = Values({2, 3}, 0, 2, 1);
    GradientTape tape;
    tape.Watch(x);
    const Tensor y = flat.f(x);
    ASSERT_OK(y.status());
    EXPECT_FALSE(tape.Gradient(y, x).connected());
  }
}

TEST(GradientsTest, EachKindHasACase) {
  std::vector<std::string> kinds;
  for (const Case& c : Cases()) kinds.push_back(c.kind);
  std::vector<std::string> flat;
  for (const Flat& c : WithoutGradient()) flat.push_back(c.kind);
  for (const TapeOperationKind* const kind : TapeOperationKinds()) {
    EXPECT_THAT(kind->gradient != nullptr ? kinds : flat,
                Contains(std::string(kind->name)));
  }
}

}  // namespace
}  // namespace parasol
