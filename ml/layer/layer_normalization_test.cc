#include "ml/layer/layer_normalization.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gtest/gtest.h"
#include "ml/layer/testing/layer_fixture.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

std::vector<double> Normalized(const LayerValues& values, int64_t columns,
                               const job::LayerNormalization& spec) {
  std::vector<double> y = values.inputs[0];
  for (size_t begin = 0; begin < y.size(); begin += columns) {
    double mean = 0;
    for (int64_t i = 0; i < columns; ++i) mean += y[begin + i] / columns;
    double variance = 0;
    for (int64_t i = 0; i < columns; ++i) {
      variance += std::pow(y[begin + i] - mean, 2) / columns;
    }
    for (int64_t i = 0; i < columns; ++i) {
      double& value = y[begin + i];
      value = (value - mean) / std::sqrt(variance + spec.epsilon());
      if (spec.scale()) value *= values.variables[0][i];
      if (spec.center()) value += values.variables.back()[i];
    }
  }
  return y;
}

class LayerNormalizationTest : public LayerTest {};

TEST_P(LayerNormalizationTest, IsTheReferenceInAllForms) {
  for (bool scale : {true, false}) {
    for (bool center : {true, false}) {
      for (int64_t columns : {1, 5, 70}) {
        SCOPED_TRACE(columns);
        job::LayerNormalization spec;
        spec.set_scale(scale);
        spec.set_center(center);
        spec.set_epsilon(0.01);
        const std::vector<LayerInput> inputs = {{.shape = {3, columns}}};
        ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> layer,
                             MakeLayerNormalization(spec, inputs));
        CheckLayer(
            *layer, RandomLayerValues(*layer, inputs, 2),
            [&](const LayerValues& v) { return Normalized(v, columns, spec); });
      }
    }
  }
}

TEST_P(LayerNormalizationTest, DefaultsAreThoseOfKeras) {
  const std::vector<LayerInput> inputs = {{.shape = {4}}};
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> layer,
                       MakeLayerNormalization({}, inputs));
  ASSERT_EQ(layer->variables().size(), 2);
  EXPECT_EQ(layer->variables()[0].name, "gamma");
  EXPECT_EQ(layer->variables()[0].initializer.constant().value(), 1);
  EXPECT_EQ(layer->variables()[1].name, "beta");
  EXPECT_TRUE(layer->variables()[1].initializer.has_zeros());
  job::LayerNormalization spec;
  spec.set_scale(true);
  spec.set_center(true);
  spec.set_epsilon(0.001);
  CheckLayer(*layer, RandomLayerValues(*layer, inputs, 2),
             [&](const LayerValues& v) { return Normalized(v, 4, spec); });
}

TEST_P(LayerNormalizationTest, LargeMeansLoseNoMoreThanTheyMust) {
  const std::vector<LayerInput> inputs = {{.shape = {4}}};
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> layer,
                       MakeLayerNormalization({}, inputs));
  const LayerValues values = {.examples = 1,
                              .inputs = {{1025, 1026, 1027, 1028}},
                              .variables = {{1, 1, 1, 1}, {0, 0, 0, 0}}};
  const LayerResults results = RunLayer(*layer, values, {});
  EXPECT_NEAR(results.y[0], -1.5 / std::sqrt(1.25 + 1e-3), 1e-5);
}

TEST(MakeLayerNormalizationTest, AScalarHasNoLastAxis) {
  EXPECT_THAT(MakeLayerNormalization({}, {{.shape = {}}}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(MakeLayerNormalizationTest, AnEpsilonThatIsNoFloat32IsRefused) {
  for (const double epsilon : {0.0, 1e-46, 1e-39, 1.5}) {
    job::LayerNormalization spec;
    spec.set_epsilon(epsilon);
    EXPECT_THAT(MakeLayerNormalization(spec, {{.shape = {4}}}),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << epsilon;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, LayerNormalizationTest, DevicesUnderTest(),
                         DeviceName);

}  // namespace
}  // namespace parasol
