#include "ml/layer/sequence/multi_head_attention.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ml/layer/testing/layer_fixture.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;
using Numbers = std::vector<double>;

// Rows times a matrix, plus a bias, which may be empty.
Numbers Projected(const Numbers& x, const Numbers& kernel, const Numbers& bias,
                  int64_t width) {
  const int64_t columns = static_cast<int64_t>(kernel.size()) / width;
  Numbers y;
  for (size_t row = 0; row < x.size() / width; ++row) {
    for (int64_t j = 0; j < columns; ++j) {
      double sum = bias.empty() ? 0 : bias[j];
      for (int64_t i = 0; i < width; ++i) {
        sum += x[row * width + i] * kernel[i * columns + j];
      }
      y.push_back(sum);
    }
  }
  return y;
}

struct AttentionCase {
  std::string spec;
  std::vector<Shape> inputs;
  int64_t heads;
  int64_t key_width;
  int64_t value_width;
};

const AttentionCase kAttentionCases[] = {
    {"num_heads: 2 key_dim: 3", {{4, 5}}, 2, 3, 3},
    {"num_heads: 2 key_dim: 3 causal: true", {{5, 4}}, 2, 3, 3},
    {"num_heads: 1 key_dim: 2 value_dim: 4 output_dim: 3 use_bias: false",
     {{4, 5}, {6, 3}},
     1,
     2,
     4},
    {"num_heads: 3 key_dim: 2", {{4, 5}, {6, 3}, {6, 4}}, 3, 2, 2},
    {"num_heads: 2 key_dim: 3 masked: true", {{4, 5}, {4}}, 2, 3, 3},
    {"num_heads: 2 key_dim: 3 masked: true causal: true",
     {{4, 5}, {6, 5}, {4, 6}},
     2,
     3,
     3},
    {"num_heads: 2 key_dim: 2 causal: true", {{6, 5}, {3, 5}}, 2, 2, 2},
};

struct Attended {
  const AttentionCase& c;
  job::MultiHeadAttention spec;
  const LayerValues& v;
  int64_t queries, keys;
  Numbers query, key, value;

  bool Sees(int64_t n, int64_t i, int64_t j) const {
    if (spec.causal() && j > i) return false;
    if (!spec.masked()) return true;
    const Numbers& mask = v.inputs.back();
    const bool by_query = c.inputs.back().size() == 2;
    return by_query ? mask[(n * queries + i) * keys + j] > .5
                    : mask[n * keys + j] > .5;
  }
  // The weights of one head of one query; all 0 if it sees nothing.
  Numbers Weights(int64_t n, int64_t i, int64_t head) const {
    Numbers weights(keys);
    double sum = 0;
    for (int64_t j = 0; j < keys; ++j) {
      if (!Sees(n, i, j)) continue;
      double score = 0;
      for (int64_t k = 0; k < c.key_width; ++k) {
        score += query[((n * queries + i) * c.heads + head) * c.key_width + k] *
                 key[((n * keys + j) * c.heads + head) * c.key_width + k];
      }
      weights[j] = std::exp(score / std::sqrt(c.key_width));
      sum += weights[j];
    }
    for (double& weight : weights) weight = sum == 0 ? 0 : weight / sum;
    return weights;
  }
  Numbers All() const {
    Numbers y;
    for (int64_t row = 0; row < v.examples * queries; ++row) {
      const int64_t n = row / queries;
      for (int64_t head = 0; head < c.heads; ++head) {
        const Numbers weights = Weights(n, row % queries, head);
        for (int64_t k = 0; k < c.value_width; ++k) {
          double sum = 0;
          for (int64_t j = 0; j < keys; ++j) {
            sum += weights[j] *
                   value[((n * keys + j) * c.heads + head) * c.value_width + k];
          }
          y.push_back(sum);
        }
      }
    }
    return y;
  }
};

Numbers AttentionReference(const AttentionCase& c,
                           const job::MultiHeadAttention& spec,
                           const LayerValues& v) {
  const size_t sequences = c.inputs.size() - (spec.masked() ? 1 : 0);
  const size_t value = sequences > 1 ? 1 : 0;
  const size_t key = sequences > 2 ? 2 : value;
  const bool has_bias = v.variables.size() == 8;
  const auto projected = [&](size_t input, size_t projection) {
    const size_t variable = (has_bias ? 2 : 1) * projection;
    return Projected(v.inputs[input], v.variables[variable],
                     has_bias ? v.variables[variable + 1] : Numbers(),
                     c.inputs[input][1]);
  };
  const Attended attended = {.c = c,
                             .spec = spec,
                             .v = v,
                             .queries = c.inputs[0][0],
                             .keys = c.inputs[value][0],
                             .query = projected(0, 0),
                             .key = projected(key, 1),
                             .value = projected(value, 2)};
  return Projected(attended.All(), v.variables[has_bias ? 6 : 3],
                   has_bias ? v.variables[7] : Numbers(),
                   c.heads * c.value_width);
}

job::MultiHeadAttention AttentionSpec(const std::string& text) {
  job::MultiHeadAttention spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &spec));
  return spec;
}

std::vector<LayerInput> InputsOf(const AttentionCase& c) {
  std::vector<LayerInput> inputs;
  for (const Shape& shape : c.inputs) inputs.push_back({.shape = shape});
  return inputs;
}

class MultiHeadAttentionTest : public LayerTest {};

TEST_P(MultiHeadAttentionTest, IsTheReferenceInAllForms) {
  for (const AttentionCase& c : kAttentionCases) {
    SCOPED_TRACE(c.spec);
    const job::MultiHeadAttention spec = AttentionSpec(c.spec);
    const std::vector<LayerInput> inputs = InputsOf(c);
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> layer,
                         MakeMultiHeadAttention(spec, inputs));
    LayerValues values = RandomLayerValues(*layer, inputs, 2);
    if (spec.masked()) {
      // The first query of the first example, or all of them, sees nothing.
      Numbers& mask = values.inputs.back();
      for (size_t i = 0; i < mask.size(); ++i) {
        const bool hidden = i < static_cast<size_t>(c.inputs.back().back());
        mask[i] = !hidden && mask[i] > -.3 ? 1 : 0;
      }
    }
    CheckLayer(*layer, values, [&](const LayerValues& v) {
      return AttentionReference(c, spec, v);
    });
  }
}

TEST_P(MultiHeadAttentionTest, DropoutDropsWeightsInTrainingAlone) {
  const AttentionCase c = {"num_heads: 2 key_dim: 3", {{16, 5}}, 2, 3, 3};
  const std::vector<LayerInput> inputs = InputsOf(c);
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<const Layer> layer,
      MakeMultiHeadAttention(AttentionSpec(c.spec + " dropout: .5"), inputs));
  LayerValues values = RandomLayerValues(*layer, inputs, 2);
  const std::vector<float> first = RunLayer(*layer, values, {}).y;
  EXPECT_EQ(RunLayer(*layer, values, {}).y, first);
  values.seed = 2;
  EXPECT_NE(RunLayer(*layer, values, {}).y, first);
  values.training = false;
  const Numbers want = AttentionReference(c, AttentionSpec(c.spec), values);
  const std::vector<float> got = RunLayer(*layer, values, {}).y;
  for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-5);
}

// With the zeros of one seed the output is a smooth function of the values'
// kernel, whose gradient the differences of outputs are.
TEST_P(MultiHeadAttentionTest, TheGradientIsOfTheWeightsThatAreLeft) {
  const std::vector<LayerInput> inputs = {{.shape = {4, 3}}};
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<const Layer> layer,
      MakeMultiHeadAttention(
          AttentionSpec("num_heads: 1 key_dim: 2 dropout: .5"), inputs));
  LayerValues values = RandomLayerValues(*layer, inputs, 2);
  const int64_t outputs = 2 * 4 * 3;
  const Numbers dy(outputs, 1);
  const LayerResults results = RunLayer(*layer, values, dy);
  for (const size_t variable : {0, 2, 4}) {
    for (size_t i = 0; i < values.variables[variable].size(); ++i) {
      const auto sum_at = [&](double step) {
        LayerValues at = values;
        at.variables[variable][i] += step;
        double sum = 0;
        for (const float y : RunLayer(*layer, at, {}).y) sum += y;
        return sum;
      };
      const double step = 1. / 64;
      EXPECT_NEAR(results.gradients[variable][i],
                  (sum_at(step) - sum_at(-step)) / (2 * step), 2e-3)
          << variable << ", " << i;
    }
  }
}

TEST(MakeMultiHeadAttentionTest, VariablesAreKerass) {
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<const Layer> layer,
      MakeMultiHeadAttention(
          AttentionSpec("num_heads: 2 key_dim: 3 value_dim: 4"),
          {{.shape = {4, 5}}, {.shape = {6, 7}}}));
  const std::vector<VariableSpec>& variables = layer->variables();
  ASSERT_EQ(variables.size(), 8);
  EXPECT_EQ(variables[0].name, "query/kernel");
  EXPECT_EQ(variables[0].shape, (Shape{5, 2, 3}));
  EXPECT_EQ(variables[1].name, "query/bias");
  EXPECT_EQ(variables[1].shape, (Shape{2, 3}));
  EXPECT_EQ(variables[2].name, "key/kernel");
  EXPECT_EQ(variables[2].shape, (Shape{7, 2, 3}));
  EXPECT_EQ(variables[4].name, "value/kernel");
  EXPECT_EQ(variables[4].shape, (Shape{7, 2, 4}));
  EXPECT_EQ(variables[6].name, "attention_output/kernel");
  EXPECT_EQ(variables[6].shape, (Shape{2, 4, 5}));
  EXPECT_EQ(variables[7].name, "attention_output/bias");
  EXPECT_EQ(variables[7].shape, (Shape{5}));
  EXPECT_EQ(layer->output_shape(), (Shape{4, 5}));
}

TEST(MakeMultiHeadAttentionTest, WhatDoesNotFitIsNamed) {
  const auto fault = [](const std::string& text,
                        const std::vector<Shape>& shapes) {
    const AttentionCase c = {text, shapes, 1, 1, 1};
    return MakeMultiHeadAttention(AttentionSpec(text), InputsOf(c)).status();
  };
  const std::string two = "num_heads: 2 key_dim: 3";
  EXPECT_THAT(fault(two, {{4}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the queries are [steps, width], not [4]")));
  EXPECT_THAT(fault(two, {{4, 5}, {6, 5}, {7, 5}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("each value has one key")));
  EXPECT_THAT(fault(two + " masked: true", {{4, 5}, {6, 5}, {5}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("[6] or [4, 6], not [5]")));
  EXPECT_THAT(fault(two + " masked: true", {{4, 5}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("and a mask, not 1 inputs")));
  EXPECT_THAT(
      fault("num_heads: 0 key_dim: 3", {{4, 5}}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("num_heads 0")));
}

INSTANTIATE_TEST_SUITE_P(Devices, MultiHeadAttentionTest, DevicesUnderTest(),
                         DeviceName);

}  // namespace
}  // namespace parasol
