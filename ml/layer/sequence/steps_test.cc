// positional_embedding, and pooling over steps.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/layer/sequence/global_step_pool.h"
#include "ml/layer/sequence/positional_embedding.h"
#include "ml/layer/testing/layer_fixture.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PositionalEmbeddingTest : public LayerTest {};

TEST_P(PositionalEmbeddingTest, AddsTheVectorOfEachStep) {
  const std::vector<LayerInput> inputs = {{.shape = {4, 3}}};
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> layer,
                       MakePositionalEmbedding({}, inputs));
  ASSERT_EQ(layer->variables().size(), 1);
  EXPECT_EQ(layer->variables()[0].name, "embeddings");
  EXPECT_EQ(layer->variables()[0].shape, (Shape{4, 3}));
  CheckLayer(*layer, RandomLayerValues(*layer, inputs, 3),
             [](const LayerValues& v) {
               std::vector<double> y = v.inputs[0];
               for (size_t i = 0; i < y.size(); ++i) {
                 y[i] += v.variables[0][i % 12];
               }
               return y;
             });
}

TEST_P(PositionalEmbeddingTest, SinesHaveWavelengthsUpToTheLargest) {
  job::PositionalEmbedding spec;
  spec.set_sinusoidal(true);
  spec.set_max_wavelength(100);
  const std::vector<LayerInput> inputs = {{.shape = {7, 5}}};
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> layer,
                       MakePositionalEmbedding(spec, inputs));
  EXPECT_TRUE(layer->variables().empty());
  CheckLayer(
      *layer, RandomLayerValues(*layer, inputs, 2), [](const LayerValues& v) {
        std::vector<double> y = v.inputs[0];
        for (size_t i = 0; i < y.size(); ++i) {
          const double step = i / 5 % 7;
          const int column = i % 5;
          const double angle = step / std::pow(100, (column - column % 2) / 5.);
          y[i] += column % 2 == 0 ? std::sin(angle) : std::cos(angle);
        }
        return y;
      });
}

TEST(MakePositionalEmbeddingTest, WhatDoesNotFitIsNamed) {
  EXPECT_THAT(
      MakePositionalEmbedding({}, {{.shape = {4}}}).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not [4]")));
  job::PositionalEmbedding spec;
  spec.set_max_wavelength(0);
  EXPECT_THAT(MakePositionalEmbedding(spec, {{.shape = {4, 3}}}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("max_wavelength is 0")));
}

// The values of one channel of one example whose steps count.
std::vector<double> Counted(const LayerValues& v, int64_t n, int64_t channel,
                            int64_t steps, int64_t channels) {
  std::vector<double> values;
  for (int64_t t = n * steps; t < (n + 1) * steps; ++t) {
    if (v.inputs.size() > 1 && !(v.inputs[1][t] > .5)) continue;
    values.push_back(v.inputs[0][t * channels + channel]);
  }
  return values;
}

std::vector<double> PooledReference(const LayerValues& v, bool is_max) {
  constexpr int64_t kSteps = 4, kChannels = 5;
  std::vector<double> y;
  for (int64_t n = 0; n < v.examples; ++n) {
    for (int64_t c = 0; c < kChannels; ++c) {
      const std::vector<double> values = Counted(v, n, c, kSteps, kChannels);
      double result = 0;
      for (const double value : values) result += value / values.size();
      if (is_max && !values.empty()) {
        result = *std::max_element(values.begin(), values.end());
      }
      y.push_back(result);
    }
  }
  return y;
}

class StepPoolTest : public LayerTest {};

TEST_P(StepPoolTest, IsTheReferenceWithAMaskAndWithout) {
  for (const bool is_max : {false, true}) {
    for (const bool masked : {false, true}) {
      SCOPED_TRACE(is_max);
      std::vector<LayerInput> inputs = {{.shape = {4, 5}}};
      if (masked) inputs.push_back({.shape = {4}});
      ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> layer,
                           is_max ? MakeGlobalMaxPool1D(inputs)
                                  : MakeGlobalAveragePool1D(inputs));
      EXPECT_THAT(layer->output_shape(), ElementsAre(5));
      LayerValues values = RandomLayerValues(*layer, inputs, 3);
      if (masked) values.inputs[1] = {1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 1, 1};
      CheckLayer(*layer, values, [&](const LayerValues& v) {
        return PooledReference(v, is_max);
      });
    }
  }
}

TEST_P(StepPoolTest, EqualLargestValuesShareTheGradient) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> layer,
                       MakeGlobalMaxPool1D({{.shape = {4, 1}}}));
  const LayerValues values = {.examples = 1, .inputs = {{2, 0, 2, 1}}};
  EXPECT_THAT(RunLayer(*layer, values, {3}).dx[0], ElementsAre(1.5, 0, 1.5, 0));
}

TEST(MakeStepPoolTest, WhatDoesNotFitIsNamed) {
  EXPECT_THAT(
      MakeGlobalMaxPool1D({{.shape = {4, 1, 1}}}).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not [4, 1, 1]")));
}

INSTANTIATE_TEST_SUITE_P(Devices, PositionalEmbeddingTest, DevicesUnderTest(),
                         DeviceName);
INSTANTIATE_TEST_SUITE_P(Devices, StepPoolTest, DevicesUnderTest(), DeviceName);

}  // namespace
}  // namespace parasol
