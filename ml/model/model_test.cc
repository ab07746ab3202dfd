#include "ml/model/model.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/device/testing/device_fixture.h"
#include "ml/kernel/testing/reference.h"
#include "ml/model/testing/model_fixture.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

// Two images of 2x3, a hidden layer of 5, four classes.
constexpr char kPerceptron[] =
    "input_shape: [2, 3] layer { flatten {} }"
    "layer { dense { units: 5 activation: RELU } }"
    "layer { dense { units: 4 } }";

class ModelTest : public ModelTestBase {};

// The mean loss of kPerceptron in double precision.
double PerceptronLoss(const std::vector<reference::Matrix>& values,
                      const Batch& batch) {
  reference::Matrix x(batch.size, 6);
  x.values.assign(batch.dense[0].values.begin(), batch.dense[0].values.end());
  const reference::Matrix hidden =
      reference::Relu(reference::Affine(x, values[0], values[1].values));
  const reference::CrossEntropy loss = reference::SoftmaxCrossEntropy(
      reference::Affine(hidden, values[2], values[3].values),
      std::vector<int32_t>(batch.labels.begin(), batch.labels.end()));
  double sum = 0;
  for (double example : loss.loss) sum += example;
  return sum / batch.size;
}

// Central differences in double precision are exact to about h^2 = 1e-10, so
// the tolerance is float32's: sums of few values below 4.
TEST(BatchResultTest, APassWithoutExamplesTakesNothingAway) {
  BatchResult sum;
  sum.Add({.examples = 2, .loss_sum = 3, .output_loss_sums = {1, 2}});
  sum.Add({});
  sum.Add({.examples = 1, .loss_sum = 1, .output_loss_sums = {.5, .25}});
  EXPECT_EQ(sum.examples, 3);
  EXPECT_EQ(sum.loss_sum, 4);
  EXPECT_EQ(sum.output_loss_sums, (std::vector<double>{1.5, 2.25}));
}

TEST_P(ModelTest, GradientsAreTheFiniteDifferencesOfTheMeanLoss) {
  const std::unique_ptr<Model> model = Make(kPerceptron);
  const Batch batch = RandomBatch(7, {2, 3}, 4);
  SetAll(*model, RandomValues(*model));
  const Values gradients = GradientsOf(*model, batch);

  std::vector<reference::Matrix> values;
  for (size_t i = 0; i < 4; ++i) {
    const std::vector<int64_t>& shape = model->variables()[i].shape;
    reference::Matrix value(shape.size() == 2 ? shape[0] : 1, shape.back());
    value.values = RandomMatrix(1, value.values.size(), i + 1).values;
    values.push_back(value);
  }
  constexpr double kStep = 1e-5;
  for (size_t i = 0; i < values.size(); ++i) {
    SCOPED_TRACE(model->variables()[i].name);
    std::vector<float> differences;
    for (double& value : values[i].values) {
      const double center = value;
      value = center + kStep;
      const double above = PerceptronLoss(values, batch);
      value = center - kStep;
      const double below = PerceptronLoss(values, batch);
      value = center;
      differences.push_back((above - below) / (2 * kStep));
    }
    EXPECT_THAT(gradients[i], Pointwise(FloatNear(2e-6), differences));
  }
}

TEST_P(ModelTest, TheLossIsASumOverTheBatchAndTheOutputsAreTheLastLayers) {
  const std::unique_ptr<Model> model =
      Make("input_shape: 3 layer { dense { units: 3 use_bias: false } }");
  Set(*model, 0, {1, 0, 0, 0, 1, 0, 0, 0, 1});
  const Batch batch = {.size = 3,
                       .dense = {{{3}, {8, 1, 1, 0, 9, 1, 2, 3, 5}}},
                       .labels = {0, 1, 2}};
  ASSERT_OK_AND_ASSIGN(Evaluated result, Evaluate(*model, batch));
  EXPECT_EQ(result.examples, 3);
  EXPECT_THAT(result.outputs, ElementsAreArray(batch.dense[0].values));
  EXPECT_NEAR(result.loss_sum / 3, .0573, 1e-4);
  EXPECT_NEAR(result.loss_sum, .001822 + .000459 + .169846, 2e-6);

  ASSERT_OK_AND_ASSIGN(const BatchResult trained,
                       Train(*model, batch, IgnoreVariable));
  EXPECT_EQ(trained.examples, 3);
  EXPECT_EQ(trained.loss_sum, result.loss_sum);
}

TEST_P(ModelTest, GradientsLeaveFromTheLastLayerFirst) {
  const std::unique_ptr<Model> model = Make(kPerceptron);
  std::vector<size_t> order;
  EXPECT_OK(Train(
      *model, RandomBatch(2, {2, 3}, 4),
      [&](size_t index, absl::Span<const float>) { order.push_back(index); }));
  EXPECT_THAT(order, ElementsAre(2, 3, 0, 1));
}

TEST_P(ModelTest, AGradientStaysUntilTheSecondNextStep) {
  const std::unique_ptr<Model> model = Make(kPerceptron);
  SetAll(*model, RandomValues(*model));
  std::vector<absl::Span<const float>> sent(4);
  EXPECT_OK(
      Train(*model, RandomBatch(7, {2, 3}, 4),
            [&](size_t index, absl::Span<const float> g) { sent[index] = g; }));
  const std::vector<float> before(sent[0].begin(), sent[0].end());
  const Values next = GradientsOf(*model, RandomBatch(3, {2, 3}, 4));
  EXPECT_THAT(sent[0], ElementsAreArray(before));
  EXPECT_NE(next[0], before);
}

TEST_P(ModelTest, ValuesTakeEffectAtUploadAndNotBefore) {
  const std::unique_ptr<Model> model =
      Make("input_shape: 1 layer { dense { units: 2 } }");
  const Batch batch = {.size = 1, .dense = {{{1}, {1}}}, .labels = {0}};
  Set(*model, 0, {5, 0});
  Set(*model, 1, {0, 0});
  ASSERT_OK_AND_ASSIGN(Evaluated before, Evaluate(*model, batch));
  absl::Span<float> next = model->HostValue(0);
  next[0] = 0;
  next[1] = 5;
  ASSERT_OK_AND_ASSIGN(Evaluated meanwhile, Evaluate(*model, batch));
  EXPECT_EQ(meanwhile.loss_sum, before.loss_sum);
  EXPECT_OK(model->Upload(0));
  EXPECT_NE(model->HostValue(0).data(), next.data());
  ASSERT_OK_AND_ASSIGN(Evaluated after, Evaluate(*model, batch));
  EXPECT_EQ(before.correct, 1);
  EXPECT_EQ(after.correct, 0);
  for (float value : {7.0f, 8.0f, 9.0f}) Set(*model, 0, {value, 0});
  EXPECT_THAT(Evaluate(*model, batch)->correct, 1);
}

TEST_P(ModelTest, BatchesOfAnySizeAddUp) {
  const std::unique_ptr<Model> model = Make(kPerceptron);
  SetAll(*model, RandomValues(*model));
  const Batch whole = RandomBatch(9, {2, 3}, 4);
  ASSERT_OK_AND_ASSIGN(Evaluated want, Evaluate(*model, whole));
  double loss = 0;
  int64_t correct = 0;
  int64_t first = 0;
  for (int64_t size : {2, 6, 1}) {
    Batch part = {.size = size, .dense = {{.shape = {2, 3}}}};
    const std::vector<float>& values = whole.dense[0].values;
    part.dense[0].values.assign(values.begin() + first * 6,
                                values.begin() + (first + size) * 6);
    part.labels.assign(whole.labels.begin() + first,
                       whole.labels.begin() + first + size);
    ASSERT_OK_AND_ASSIGN(Evaluated result, Evaluate(*model, part));
    loss += result.loss_sum;
    correct += result.correct;
    first += size;
  }
  EXPECT_NEAR(loss, want.loss_sum, 1e-5);
  EXPECT_EQ(correct, want.correct);
}

// Activations are layers of their own in one model, and part of a dense layer
// in the other; the first one is below every variable.
TEST_P(ModelTest, AnActivationIsTheSameInsideALayerAndOnItsOwn) {
  const std::unique_ptr<Model> inside = Make(
      "input_shape: 6 layer { activation: RELU }"
      "layer { dense { units: 5 activation: RELU } }"
      "layer { dense { units: 4 } }");
  const std::unique_ptr<Model> outside = Make(
      "input_shape: 6 layer { activation: RELU } layer { dense { units: 5 } }"
      "layer { activation: ACTIVATION_UNSPECIFIED } layer { activation: RELU }"
      "layer { activation: RELU } layer { dense { units: 4 } }");
  const Batch batch = RandomBatch(7, {6}, 4);
  for (Model* model : {inside.get(), outside.get()}) {
    SetAll(*model, RandomValues(*model));
  }
  EXPECT_EQ(GradientsOf(*inside, batch), GradientsOf(*outside, batch));
}

TEST_P(ModelTest, WhatIsNotABatchOfThisModelIsNamed) {
  const std::unique_ptr<Model> model = Make(kPerceptron);
  struct Case {
    std::string name;
    Batch batch;
    std::string want;
  };
  const float f = 0;
  const Case cases[] = {
      {"empty",
       {.size = 0, .dense = {{{2, 3}, {}}}, .labels = {}},
       "a batch of 0 examples"},
      {"negative",
       {.size = -1, .dense = {{{2, 3}, {}}}, .labels = {}},
       "a batch of -1 examples"},
      {"too large",
       {.size = std::numeric_limits<int64_t>::max(),
        .dense = {{{2, 3}, {}}},
        .labels = {}},
       "not between 1 and"},
      {"transposed",
       {.size = 1, .dense = {{{3, 2}, {f, f, f, f, f, f}}}, .labels = {0}},
       "examples are [3, 2], the model's input is [2, 3]"},
      {"too few features",
       {.size = 1, .dense = {{{2, 3}, {f, f, f, f, f}}}, .labels = {0}},
       "5 features"},
      {"too many labels",
       {.size = 1, .dense = {{{2, 3}, {f, f, f, f, f, f}}}, .labels = {0, 1}},
       "2 labels, not 1"},
      {"label too large",
       {.size = 1, .dense = {{{2, 3}, {f, f, f, f, f, f}}}, .labels = {4}},
       "label 4 of example 0 of the batch is not a class from 0 to 3"},
      {"label negative",
       {.size = 1, .dense = {{{2, 3}, {f, f, f, f, f, f}}}, .labels = {-1}},
       "label -1"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    EXPECT_THAT(
        model->Stage(c.batch, *model->NewStagedBatch()),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.want)));
  }
}

TEST_P(ModelTest, ADivergedModelAnswersNan) {
  const std::unique_ptr<Model> model = Make(kPerceptron);
  Values values = RandomValues(*model);
  values[0][0] = std::numeric_limits<float>::quiet_NaN();
  SetAll(*model, values);
  ASSERT_OK_AND_ASSIGN(Evaluated result,
                       Evaluate(*model, RandomBatch(2, {2, 3}, 4)));
  EXPECT_TRUE(std::isnan(result.loss_sum));
}

// Exclusive or: no straight line separates it, a hidden layer does.
TEST_P(ModelTest, GradientDescentLearnsExclusiveOr) {
  const std::unique_ptr<Model> model = Make(
      "input_shape: 2 layer { dense { units: 8 activation: RELU } }"
      "layer { dense { units: 2 } }");
  const Batch batch = {.size = 4,
                       .dense = {{{2}, {0, 0, 0, 1, 1, 0, 1, 1}}},
                       .labels = {0, 1, 1, 0}};
  Values values = RandomValues(*model);
  SetAll(*model, values);
  ASSERT_OK_AND_ASSIGN(Evaluated first, Evaluate(*model, batch));
  for (int step = 0; step < 300; ++step) {
    const Values gradients = GradientsOf(*model, batch);
    for (size_t i = 0; i < values.size(); ++i) {
      for (size_t j = 0; j < values[i].size(); ++j) {
        values[i][j] -= .5f * gradients[i][j];
      }
    }
    SetAll(*model, values);
  }
  ASSERT_OK_AND_ASSIGN(Evaluated last, Evaluate(*model, batch));
  EXPECT_EQ(last.correct, 4);
  EXPECT_LT(last.loss_sum, first.loss_sum / 10);
}

TEST_P(ModelTest, ALayerWhoseCodeIsNotLinkedInIsNamed) {
  ASSERT_OK_AND_ASSIGN(
      const Graph graph,
      ResolveGraph(Classifier("input_shape: 2 layer { dense { units: 2 } } "
                              "layer { name: 'cross' custom { "
                              "type: 'elsewhere' output_shape: 2 } }")));
  EXPECT_THAT(Model::Create(graph, device()),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("model.layer[1] \"cross\""),
                             HasSubstr("\"elsewhere\""))));
}

INSTANTIATE_TEST_SUITE_P(Devices, ModelTest, DevicesUnderTest(), DeviceName);

}  // namespace
}  // namespace parasol
