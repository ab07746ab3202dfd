// Models with several named outputs.

#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/faults.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/device/testing/device_fixture.h"
#include "ml/model/graph_faults.h"
#include "ml/model/model.h"
#include "ml/model/plan.h"
#include "ml/model/testing/model_fixture.h"

namespace parasol {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

constexpr int kExamples = 6;
constexpr int kSteps = 5;
constexpr float kRate = .5f;
constexpr double kTolerance = 2e-6;  // single precision, five steps

std::string LabelOf(const std::string& column) {
  return "label { column: '" + column + "' } ";
}

// The two towers on one hidden layer of testdata/make_keras_outputs.py.
std::string Towers(const std::string& activation) {
  return "input_shape: 2 "
         "layer { name: 'hidden' dense { units: 3 activation: TANH } } "
         "layer { name: 'a' input: 'hidden' dense { units: 1 " +
         activation +
         " } } "
         "layer { name: 'b' input: 'hidden' dense { units: 1 " +
         activation + " } } ";
}

job::Model OfNumbers() {
  return ParseModel(Towers("") + "output { name: 'click' layer: 'a' " +
                    LabelOf("c") +
                    "loss { binary_crossentropy {} } } "
                    "output { name: 'number' layer: 'b' weight: .5 " +
                    LabelOf("n") + "loss { mean_squared_error {} } }");
}

job::Model Esmm() {
  const std::string loss =
      "loss { binary_crossentropy { from_logits: false } } ";
  return ParseModel(Towers("activation: SIGMOID") +
                    "layer { name: 'product' input: ['a', 'b'] multiply {} } "
                    "output { name: 'ctr' layer: 'a' " +
                    LabelOf("c") + loss +
                    "} output { name: 'ctcvr' layer: 'product' weight: 2 " +
                    LabelOf("v") + loss +
                    "} output { name: 'cvr' layer: 'b' weight: 0 " +
                    LabelOf("v") + "mask: 'c' " + loss + "}");
}

Target TargetOf(const std::vector<float>& labels,
                const std::vector<float>& counts = std::vector<float>(kExamples,
                                                                      1)) {
  Target target = {.labels = labels, .weights = counts};
  float counted = 0;
  for (const float one : counts) counted += one;
  target.scale = counted == 0 ? 0 : kExamples / counted;
  return target;
}

Batch InputBatch() {
  Batch batch = {.size = kExamples, .dense = {{.shape = {2}}}};
  for (int i = 0; i < kExamples; ++i) {
    for (int j = 0; j < 2; ++j) {
      batch.dense[0].values.push_back(((i * 5 + j * 3) % 7 - 3) / 4.0f);
    }
  }
  return batch;
}

const std::vector<float> kClicks = {1, 0, 1, 1, 0, 0};
const std::vector<float> kConversions = {1, 0, 0, 1, 0, 0};

Batch NumbersBatch() {
  Batch batch = InputBatch();
  batch.weights = {1, 2, 1, .5f, 1, 1};
  batch.targets = {TargetOf(kClicks),
                   TargetOf({.5f, -1, 0, 0, 0, 1.5f}, {1, 1, 0, 1, 0, 1})};
  return batch;
}

Batch EsmmBatch() {
  Batch batch = InputBatch();
  batch.targets = {TargetOf(kClicks), TargetOf(kConversions),
                   TargetOf(kConversions, kClicks)};
  return batch;
}

class OutputsTest : public ModelTestBase {
 protected:
  static Values InitialValues(const Model& model) {
    Values values;
    for (const VariableSpec& variable : model.variables()) {
      const int64_t seed = static_cast<int64_t>(values.size()) + 1;
      std::vector<float>& value = values.emplace_back();
      for (int64_t i = 0; i < variable.elements(); ++i) {
        value.push_back(static_cast<float>((i * 7 + seed * 3) % 11 - 5) / 10);
      }
    }
    return values;
  }

  // Trains by SGD; returns the losses of each step, the model's first.
  static std::vector<std::vector<double>> Run(Model& model, const Batch& batch,
                                              Values& values) {
    std::vector<std::vector<double>> losses;
    for (int step = 0; step < kSteps; ++step) {
      SetAll(model, values);
      Values gradients(values.size());
      const auto result = Train(
          model, batch, [&](size_t index, absl::Span<const float> gradient) {
            gradients[index].assign(gradient.begin(), gradient.end());
          });
      EXPECT_OK(result.status());
      std::vector<double>& of_step = losses.emplace_back();
      of_step.push_back(result->loss_sum / kExamples);
      for (const double sum : result->output_loss_sums) {
        of_step.push_back(sum / kExamples);
      }
      for (size_t i = 0; i < values.size(); ++i) {
        EXPECT_EQ(gradients[i].size(), values[i].size());
        for (size_t j = 0; j < values[i].size(); ++j) {
          values[i][j] -= kRate * gradients[i][j];
        }
      }
    }
    return losses;
  }

  void CheckTrajectory(const job::Model& spec, const Batch& batch,
                       const std::vector<std::vector<double>>& losses,
                       const Values& want) {
    const std::unique_ptr<Model> model = Make(spec);
    Values values = InitialValues(*model);
    const std::vector<std::vector<double>> got = Run(*model, batch, values);
    ASSERT_EQ(got.size(), losses.size());
    for (size_t step = 0; step < losses.size(); ++step) {
      SCOPED_TRACE(step);
      EXPECT_THAT(got[step],
                  Pointwise(testing::DoubleNear(kTolerance), losses[step]));
    }
    for (size_t i = 0; i < want.size(); ++i) {
      SCOPED_TRACE(model->variables()[i].name);
      EXPECT_THAT(values[i], Pointwise(FloatNear(kTolerance), want[i]));
    }
  }
};

// Numbers by testdata/make_keras_outputs.py.
TEST_P(OutputsTest, TrainsAsKerasWithTwoLossesAndExamplesWithoutALabel) {
  CheckTrajectory(OfNumbers(), NumbersBatch(),
                  {{1.3517209, 0.722195262, 1.25905127},
                   {1.22594924, 0.711903893, 1.0280907},
                   {1.19720311, 0.698689446, 0.997027337},
                   {1.16639655, 0.683597804, 0.965597484},
                   {1.13192644, 0.665959861, 0.931933158}},
                  {{-0.361911919f, 0.771832389f, 0.262281889f, -0.09415852f,
                    0.375152076f, -0.190549407f},
                   {0.135968041f, -0.0946407478f, 0.317360982f},
                   {0.423682265f, -0.12029987f, -0.500396947f},
                   {-0.381910268f},
                   {-0.0136905905f, -0.706292354f, 0.0247721828f},
                   {-0.119563965f}});
}

TEST_P(OutputsTest, TrainsAsKerasWithAProductOfProbabilities) {
  CheckTrajectory(Esmm(), EsmmBatch(),
                  {{2.00075777, 0.724147384, 0.638305192, 0.598935162},
                   {1.87695996, 0.677271915, 0.599844024, 0.59011657},
                   {1.77553824, 0.63977296, 0.56788264, 0.580508848},
                   {1.65462188, 0.5941929, 0.53021449, 0.569750671},
                   {1.49811369, 0.533602637, 0.482255528, 0.557567464}},
                  {{-0.726830959f, 0.910211726f, 0.47442531f, 0.0408727403f,
                    0.199055837f, -0.234669144f},
                   {0.149408483f, -0.238288761f, 0.249993606f},
                   {0.762906007f, -0.518119337f, -0.615178244f},
                   {-0.0962737222f},
                   {0.0817841972f, -0.764801873f, 0.120449175f},
                   {0.336696789f}});
}

// What would be written of the others stays out of sums and gradients.
TEST_P(OutputsTest, WhatDoesNotCountHasNoEffect) {
  const std::unique_ptr<Model> model = Make(OfNumbers());
  SetAll(*model, InitialValues(*model));
  Batch batch = NumbersBatch();
  const Values want = GradientsOf(*model, batch);
  batch.targets[1].labels[2] = 1e6f;
  EXPECT_EQ(GradientsOf(*model, batch), want);
  batch.targets[1] = TargetOf({1, 2, 3, 4, 5, 6}, {0, 0, 0, 0, 0, 0});
  const Values without = GradientsOf(*model, batch);
  EXPECT_THAT(without[5], ElementsAre(0));
  EXPECT_NE(without[3], std::vector<float>({0}));
}

TEST_P(OutputsTest, OutputsAreBesideEachOtherForEachExample) {
  const std::unique_ptr<Model> model = Make(ParseModel(
      "input_shape: 2 layer { name: 'a' dense { units: 3 } } "
      "layer { name: 'b' dense { units: 1 } input: 'a' } "
      "output { name: 'b' " +
      LabelOf("x") +
      "loss { mean_squared_error {} } } "
      "output { name: 'a' " +
      LabelOf("y") + "loss { sparse_categorical_crossentropy {} } }"));
  SetAll(*model, InitialValues(*model));
  Batch batch = InputBatch();
  batch.targets = {TargetOf({0, 0, 0, 0, 0, 0}), TargetOf({0, 1, 2, 0, 1, 2})};
  const std::unique_ptr<StagedBatch> staged = model->NewStagedBatch();
  ASSERT_OK(model->Stage(batch, *staged));
  ASSERT_OK_AND_ASSIGN(const EvaluatedBatch got, model->Evaluate(*staged));
  ASSERT_EQ(got.outputs.size(), 4u * kExamples);
  const Values v = InitialValues(*model);
  for (int i = 0; i < kExamples; ++i) {
    float b = v[3][0];
    for (int j = 0; j < 3; ++j) {
      const float a = batch.dense[0].values[2 * i] * v[0][j] +
                      batch.dense[0].values[2 * i + 1] * v[0][3 + j] + v[1][j];
      b += a * v[2][j];
      EXPECT_NEAR(got.outputs[4 * i + 1 + j], a, 1e-6);
    }
    EXPECT_NEAR(got.outputs[4 * i], b, 1e-6);
  }
}

// Two losses of one layer are one loss of their sum.
TEST_P(OutputsTest, TwoOutputsMayBeOfOneLayer) {
  const std::string loss = LabelOf("x") + "loss { mean_squared_error {} } } ";
  const std::string layers =
      "input_shape: 2 layer { name: 'a' dense { units: 1 } } ";
  const std::unique_ptr<Model> one =
      Make(ParseModel(layers + "output { name: 'a' weight: 3 " + loss));
  const std::unique_ptr<Model> two = Make(ParseModel(
      layers + "output { name: 'first' layer: 'a' weight: 1 " + loss +
      "output { name: 'second' layer: 'a' weight: 2 " + loss));
  SetAll(*one, InitialValues(*one));
  SetAll(*two, InitialValues(*two));
  Batch batch = InputBatch();
  batch.targets = {TargetOf({0, 1, 0, 1, 0, 1})};
  const Values want = GradientsOf(*one, batch);
  batch.targets.push_back(batch.targets[0]);
  const Values got = GradientsOf(*two, batch);
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_THAT(got[i], Pointwise(FloatNear(1e-6), want[i]));
  }
}

TEST_P(OutputsTest, ABadLabelNamesItsOutput) {
  const std::unique_ptr<Model> model = Make(OfNumbers());
  Batch batch = NumbersBatch();
  batch.targets[0].labels[3] = 2;
  const std::unique_ptr<StagedBatch> staged = model->NewStagedBatch();
  EXPECT_THAT(model->Stage(batch, *staged),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("output \"click\": label 2")));
  batch.targets.pop_back();
  EXPECT_THAT(model->Stage(batch, *staged),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("labels of 1 named outputs")));
}

TEST(OutputsGraphTest, FaultsNameTheOutput) {
  struct Case {
    std::string outputs;
    std::string want;
  };
  const std::string good = "loss { mean_squared_error {} } ";
  const Case cases[] = {
      {"output { name: 'a-b' " + LabelOf("x") + good + "}", "letters"},
      {"output { name: 'a' " + good + "}",
       "model.output[0] \"a\": label.column is not set"},
      {"output { name: 'a' " + LabelOf("x") + "}", "loss is not set"},
      {"output { name: 'a' layer: 'hiden' " + LabelOf("x") + good + "}",
       "layer \"hiden\" is no layer of the model; did you mean \"hidden\""},
      {"output { name: 'a' weight: -1 " + LabelOf("x") + good + "}",
       "weight: -1 is not a number from 0"},
      {"output { name: 'a' weight: 0 " + LabelOf("x") + good +
           "} output { name: 'b' weight: 0 " + LabelOf("x") + good + "}",
       "all weights are 0"},
      {"output { name: 'a' " + LabelOf("x") + good + "} output { name: 'a' " +
           LabelOf("x") + good + "}",
       "an earlier output is called so too"},
      {"output { name: 'a' " + LabelOf("x") + good + "}",
       "model.layer[2] \"b\": no layer reads its output, and it is none of "
       "model.output"},
      {"output { name: 'a' " + LabelOf("x") + good +
           "} output { name: 'b' weight: 0 " + LabelOf("x") + good + "}",
       "model.layer \"b\": only outputs with weight 0 read it"},
      {"output { name: 'a' " + LabelOf("x") + good + "} output { name: 'b' " +
           LabelOf("x") + good + "} loss { mean_squared_error {} }",
       "model.loss: model.output says the losses"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.outputs);
    Faults faults;
    CheckGraph(ParseModel(Towers("") + c.outputs), /*faulty=*/{}, faults);
    EXPECT_THAT(faults.all(),
                Contains(StatusIs(absl::StatusCode::kInvalidArgument,
                                  HasSubstr(c.want))));
  }
}

// A relu behind a layer becomes part of it, unless the layer is an output.
TEST(OutputsPlanTest, AnOutputIsWhatTheLayerGives) {
  const Graph graph = *ResolveGraph(
      ParseModel("input_shape: 2 layer { name: 'a' dense { units: 2 } } "
                 "layer { name: 'b' activation: RELU } "
                 "output { name: 'a' " +
                 LabelOf("x") +
                 "loss { mean_squared_error {} } } "
                 "output { name: 'b' " +
                 LabelOf("y") + "loss { mean_squared_error {} } }"));
  const Plan plan = MakePlan(graph);
  EXPECT_EQ(plan.steps.size(), 2u);
  ASSERT_EQ(plan.outputs.size(), 2u);
  EXPECT_EQ(plan.outputs[0].step, 0u);
  EXPECT_EQ(plan.outputs[1].step, 1u);
  EXPECT_NE(plan.outputs[0].gradient, plan.outputs[1].gradient);
}

INSTANTIATE_TEST_SUITE_P(Devices, OutputsTest, DevicesUnderTest(), DeviceName);

}  // namespace
}  // namespace parasol
