#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/layer/normalization/group_normalization.h"
#include "ml/layer/normalization/rms_normalization.h"
#include "ml/layer/testing/layer_fixture.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

// Positions in [examples, pixels, channels] of an example's group.
std::vector<int64_t> PlacesOf(int64_t example, int64_t group, int64_t pixels,
                              int64_t channels, int64_t groups) {
  const int64_t width = channels / groups;
  std::vector<int64_t> places;
  for (int64_t p = 0; p < pixels; ++p) {
    for (int64_t i = 0; i < width; ++i) {
      places.push_back((example * pixels + p) * channels + group * width + i);
    }
  }
  return places;
}

std::vector<double> Normalized(const LayerValues& v, int64_t pixels,
                               int64_t channels,
                               const job::GroupNormalization& spec) {
  const int64_t groups = spec.groups() == -1 ? channels : spec.groups();
  const std::vector<double>& x = v.inputs[0];
  std::vector<double> y(x.size());
  for (int64_t n = 0; n < v.examples; ++n) {
    for (int64_t g = 0; g < groups; ++g) {
      const std::vector<int64_t> places =
          PlacesOf(n, g, pixels, channels, groups);
      const double size = static_cast<double>(places.size());
      double mean = 0, variance = 0;
      for (const int64_t i : places) mean += x[i] / size;
      for (const int64_t i : places) {
        variance += std::pow(x[i] - mean, 2) / size;
      }
      for (const int64_t i : places) {
        y[i] = (x[i] - mean) / std::sqrt(variance + spec.epsilon());
        if (spec.scale()) y[i] *= v.variables[0][i % channels];
        if (spec.center()) y[i] += v.variables.back()[i % channels];
      }
    }
  }
  return y;
}

class GroupNormalizationTest : public LayerTest {};

TEST_P(GroupNormalizationTest, IsTheReferenceInAllForms) {
  for (const bool scale : {true, false}) {
    for (const bool center : {true, false}) {
      for (const int64_t groups : {1, 2, 3, 6, -1}) {
        SCOPED_TRACE(groups);
        job::GroupNormalization spec;
        spec.set_groups(groups);
        spec.set_scale(scale);
        spec.set_center(center);
        spec.set_epsilon(0.01);
        const std::vector<LayerInput> inputs = {{.shape = {3, 5, 6}}};
        ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> layer,
                             MakeGroupNormalization(spec, inputs));
        CheckLayer(
            *layer, RandomLayerValues(*layer, inputs, 2),
            [&](const LayerValues& v) { return Normalized(v, 15, 6, spec); });
      }
    }
  }
}

TEST_P(GroupNormalizationTest, ARowOfManyChannelsIsTheReference) {
  job::GroupNormalization spec;
  spec.set_groups(2);
  spec.set_scale(true);
  spec.set_center(true);
  spec.set_epsilon(0.001);
  const std::vector<LayerInput> inputs = {{.shape = {140}}};
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> layer,
                       MakeGroupNormalization(spec, inputs));
  CheckLayer(*layer, RandomLayerValues(*layer, inputs, 3),
             [&](const LayerValues& v) { return Normalized(v, 1, 140, spec); });
}

TEST(MakeGroupNormalizationTest, DefaultsAreKerass) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> layer,
                       MakeGroupNormalization({}, {{.shape = {2, 64}}}));
  ASSERT_EQ(layer->variables().size(), 2);
  EXPECT_EQ(layer->variables()[0].name, "gamma");
  EXPECT_EQ(layer->variables()[0].initializer.constant().value(), 1);
  EXPECT_EQ(layer->variables()[1].name, "beta");
  EXPECT_TRUE(layer->variables()[1].initializer.has_zeros());
}

TEST(MakeGroupNormalizationTest, GroupsMustDivideTheChannels) {
  EXPECT_THAT(MakeGroupNormalization({}, {{.shape = {2, 40}}}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("groups is 32, which does not divide 40")));
  EXPECT_THAT(MakeGroupNormalization({}, {{.shape = {}}}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

class RmsNormalizationTest : public LayerTest {};

TEST_P(RmsNormalizationTest, IsTheReference) {
  for (const int64_t columns : {1, 5, 70}) {
    SCOPED_TRACE(columns);
    job::RmsNormalization spec;
    spec.set_epsilon(0.01);
    const std::vector<LayerInput> inputs = {{.shape = {3, columns}}};
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> layer,
                         MakeRmsNormalization(spec, inputs));
    EXPECT_EQ(layer->variables()[0].name, "scale");
    CheckLayer(*layer, RandomLayerValues(*layer, inputs, 2),
               [&](const LayerValues& v) {
                 std::vector<double> y = v.inputs[0];
                 for (size_t begin = 0; begin < y.size(); begin += columns) {
                   double squares = 0;
                   for (int64_t i = 0; i < columns; ++i) {
                     squares += y[begin + i] * y[begin + i] / columns;
                   }
                   for (int64_t i = 0; i < columns; ++i) {
                     y[begin + i] *=
                         v.variables[0][i] / std::sqrt(squares + 0.01);
                   }
                 }
                 return y;
               });
  }
}

TEST_P(RmsNormalizationTest, TheDefaultEpsilonIsAMillionth) {
  const std::vector<LayerInput> inputs = {{.shape = {1}}};
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> layer,
                       MakeRmsNormalization({}, inputs));
  const LayerValues values = {
      .examples = 1, .inputs = {{1e-3}}, .variables = {{1}}};
  EXPECT_NEAR(RunLayer(*layer, values, {}).y[0], std::sqrt(.5), 1e-5);
}

TEST(MakeRmsNormalizationTest, AScalarHasNoLastAxis) {
  EXPECT_THAT(MakeRmsNormalization({}, {{.shape = {}}}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

INSTANTIATE_TEST_SUITE_P(Devices, GroupNormalizationTest, DevicesUnderTest(),
                         DeviceName);
INSTANTIATE_TEST_SUITE_P(Devices, RmsNormalizationTest, DevicesUnderTest(),
                         DeviceName);

}  // namespace
}  // namespace parasol
