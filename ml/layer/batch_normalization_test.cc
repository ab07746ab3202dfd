#include "ml/layer/batch_normalization.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/kernel/testing/reference_image.h"
#include "ml/layer/testing/layer_fixture.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

constexpr double kEpsilon = .01;

job::BatchNormalization Spec() {
  job::BatchNormalization spec;
  spec.set_momentum(.9);
  spec.set_epsilon(kEpsilon);
  return spec;
}

// For a layer with gamma and beta.
std::vector<double> Reference(const LayerValues& values) {
  const reference::ChannelMoments moments =
      values.training
          ? reference::MomentsOf(values.inputs[0], values.variables[0].size())
          : reference::ChannelMoments{values.variables[2], values.variables[3]};
  return reference::BatchNormalization(values.inputs[0], moments,
                                       values.variables[0], values.variables[1],
                                       kEpsilon);
}

std::vector<double> ReferenceWithRelu(const LayerValues& values) {
  std::vector<double> y = Reference(values);
  for (double& value : y) value = std::max(value, 0.0);
  return y;
}

// Variances are not negative.
LayerValues ValuesFor(const Layer& layer, const std::vector<LayerInput>& inputs,
                      int64_t examples) {
  LayerValues values = RandomLayerValues(layer, inputs, examples);
  for (double& variance : values.variables.back()) {
    variance = std::abs(variance) + .25;
  }
  return values;
}

class BatchNormalizationLayerTest : public LayerTest {};

TEST_P(BatchNormalizationLayerTest, IsTheReferenceOfImagesAndOfFeatures) {
  for (const Shape& shape : {Shape{3, 4, 5}, Shape{7}, Shape{2, 3}}) {
    SCOPED_TRACE(shape.size());
    const std::vector<LayerInput> inputs = {{.shape = shape}};
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> layer,
                         MakeBatchNormalization(Spec(), inputs));
    EXPECT_EQ(layer->output_shape(), shape);
    const LayerValues values = ValuesFor(*layer, inputs, /*examples=*/6);
    CheckLayer(*layer, values, Reference);
    CheckLayer(*layer->WithRelu(), values, ReferenceWithRelu);
  }
}

TEST_P(BatchNormalizationLayerTest, ATermIsAddedToTheOutput) {
  const std::vector<LayerInput> inputs = {{.shape = {3, 4, 5}}};
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> plain,
                       MakeBatchNormalization(Spec(), inputs));
  const std::unique_ptr<const Layer> layer = plain->WithTerm();
  ASSERT_NE(layer, nullptr);
  const LayerValues values =
      ValuesFor(*layer, {inputs[0], inputs[0]}, /*examples=*/6);
  const auto sum = [](const LayerValues& at) {
    std::vector<double> y = Reference(at);
    for (size_t i = 0; i < y.size(); ++i) y[i] += at.inputs[1][i];
    return y;
  };
  CheckLayer(*layer, values, sum);
  CheckLayer(*layer->WithRelu(), values, [&](const LayerValues& at) {
    std::vector<double> y = sum(at);
    for (double& value : y) value = std::max(value, 0.0);
    return y;
  });
}

TEST_P(BatchNormalizationLayerTest, HasNoGammaOrBetaWhereTheSpecHasNone) {
  const std::vector<LayerInput> inputs = {{.shape = {3, 4}}};
  job::BatchNormalization spec = Spec();
  spec.set_scale(false);
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<const Layer> layer,
                       MakeBatchNormalization(spec, inputs));
  CheckLayer(*layer, ValuesFor(*layer, inputs, 5), [](LayerValues v) {
    v.variables.insert(v.variables.begin(), std::vector<double>(4, 1));
    return Reference(v);
  });
  spec.clear_scale();
  spec.set_center(false);
  ASSERT_OK_AND_ASSIGN(layer, MakeBatchNormalization(spec, inputs));
  CheckLayer(*layer, ValuesFor(*layer, inputs, 5), [](LayerValues v) {
    v.variables.insert(v.variables.begin() + 1, std::vector<double>(4, 0));
    return Reference(v);
  });
}

TEST_P(BatchNormalizationLayerTest, MovingMomentsFollowTheBatchs) {
  const std::vector<LayerInput> inputs = {{.shape = {3, 4}}};
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> layer,
                       MakeBatchNormalization(Spec(), inputs));
  const LayerValues values = ValuesFor(*layer, inputs, /*examples=*/5);
  const LayerResults results =
      RunLayer(*layer, values, std::vector<double>(values.inputs[0].size(), 1));
  const reference::ChannelMoments batch =
      reference::MomentsOf(values.inputs[0], 4);
  std::vector<float> mean, variance;
  for (int c = 0; c < 4; ++c) {
    mean.push_back(.1 * (values.variables[2][c] - batch.mean[c]));
    // 15 rows: 15 / 14 makes the variance unbiased.
    variance.push_back(.1 *
                       (values.variables[3][c] - batch.variance[c] * 15 / 14));
  }
  EXPECT_THAT(results.gradients[2], Pointwise(FloatNear(1e-6), mean));
  EXPECT_THAT(results.gradients[3], Pointwise(FloatNear(1e-6), variance));
}

TEST_P(BatchNormalizationLayerTest, OneThatIsNotTrainableKeepsItsMoments) {
  const std::vector<LayerInput> inputs = {{.shape = {3, 4, 5}}};
  for (const bool has_both : {true, false}) {
    job::BatchNormalization spec = Spec();
    spec.set_scale(has_both);
    spec.set_center(has_both);
    ASSERT_OK_AND_ASSIGN(
        const std::unique_ptr<const Layer> layer,
        MakeBatchNormalization(spec, inputs, /*trainable=*/false));
    EXPECT_EQ(layer->WithRelu(), nullptr);
    EXPECT_EQ(layer->WithTerm(), nullptr);
    for (const VariableSpec& variable : layer->variables()) {
      EXPECT_FALSE(variable.trained) << variable.name;
    }
    CheckLayer(*layer, ValuesFor(*layer, inputs, /*examples=*/6),
               [has_both](const LayerValues& values) {
                 const auto& variables = values.variables;
                 const size_t first = has_both ? 2 : 0;
                 const std::vector<double> ones(5, 1), zeros(5);
                 return reference::BatchNormalization(
                     values.inputs[0], {variables[first], variables[first + 1]},
                     has_both ? variables[0] : ones,
                     has_both ? variables[1] : zeros, kEpsilon);
               });
  }
}

TEST(MakeBatchNormalizationTest, MovingMomentsAreVariablesThatAreNotTrained) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> layer,
                       MakeBatchNormalization({}, {{.shape = {8, 8, 3}}}));
  std::vector<std::string> names;
  std::vector<bool> trained;
  std::vector<float> initial;
  for (const VariableSpec& variable : layer->variables()) {
    names.push_back(variable.name);
    trained.push_back(variable.trained);
    initial.push_back(variable.initializer.constant().value());
    EXPECT_THAT(variable.shape, ElementsAre(3));
  }
  EXPECT_THAT(names,
              ElementsAre("gamma", "beta", "moving_mean", "moving_variance"));
  EXPECT_THAT(trained, ElementsAre(true, true, false, false));
  EXPECT_THAT(initial, ElementsAre(1, 0, 0, 1));
}

TEST(MakeBatchNormalizationTest, NumbersOutOfRangeAreSaid) {
  const std::vector<LayerInput> inputs = {{.shape = {8, 8, 3}}};
  job::BatchNormalization spec;
  spec.set_momentum(1.5);
  EXPECT_THAT(MakeBatchNormalization(spec, inputs),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("momentum is 1.5")));
  spec.clear_momentum();
  spec.set_epsilon(std::numeric_limits<double>::quiet_NaN());
  EXPECT_THAT(MakeBatchNormalization(spec, inputs),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("epsilon is nan")));
  spec.set_epsilon(1e-39);  // a denormal float32
  EXPECT_THAT(MakeBatchNormalization(spec, inputs),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("epsilon is 1e-39")));
}

INSTANTIATE_TEST_SUITE_P(Devices, BatchNormalizationLayerTest,
                         DevicesUnderTest(), DeviceName);

}  // namespace
}  // namespace parasol
