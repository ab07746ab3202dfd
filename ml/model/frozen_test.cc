// Models with layers and tables that are not trainable.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/device/testing/device_fixture.h"
#include "ml/kernel/testing/reference.h"
#include "ml/model/graph.h"
#include "ml/model/model.h"
#include "ml/model/plan.h"
#include "ml/model/testing/model_fixture.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// Three dense layers, each with the fields of one of the strings.
job::Model Tower(const std::string& a, const std::string& b,
                 const std::string& c) {
  return Classifier(absl::StrCat(
      "input_shape: 6 "
      "layer { name: 'a' dense { units: 5 kernel_l2: .5 activation: RELU } ",
      a, " } layer { name: 'b' dense { units: 5 kernel_l2: .5 } ", b,
      " } layer { name: 'c' dense { units: 4 } ", c, " }"));
}

std::vector<std::string> BackwardOf(const job::Model& spec) {
  std::vector<std::string> steps;
  const Plan plan = MakePlan(ResolveGraph(spec).value());
  for (const BackwardOp& op : plan.backward) {
    steps.push_back(plan.steps[op.step].name);
  }
  return steps;
}

TEST(FrozenGraphTest, SaysWhichVariablesAndTablesChangeAndAtWhichRate) {
  ASSERT_OK_AND_ASSIGN(
      const Graph graph,
      ResolveGraph(Tower("trainable: false", "learning_rate_multiplier: .25",
                         "trainable: true")));
  for (size_t i = 0; i < graph.variables.size(); ++i) {
    const VariableSpec& variable = graph.variables[i];
    SCOPED_TRACE(variable.name);
    EXPECT_EQ(variable.frozen, i < 2);
    EXPECT_EQ(variable.trained, i >= 2);
    EXPECT_EQ(variable.learning_rate_multiplier, i / 2 == 1 ? .25 : 1);
  }
  EXPECT_THAT(graph.variable_l2, ElementsAre(0, 0, .5, 0, 0, 0));
}

TEST(FrozenGraphTest, NothingIsComputedBelowTheFirstLayerThatIsTrained) {
  EXPECT_THAT(BackwardOf(Tower("", "", "")), ElementsAre("c", "b", "a"));
  EXPECT_THAT(BackwardOf(Tower("trainable: false", "", "")),
              ElementsAre("c", "b"));
  EXPECT_THAT(BackwardOf(Tower("trainable: false", "trainable: false", "")),
              ElementsAre("c"));
  // The gradient goes through layers that are not trained.
  EXPECT_THAT(BackwardOf(Tower("", "trainable: false", "trainable: false")),
              ElementsAre("c", "b", "a"));
}

TEST(FrozenGraphTest, WhatCannotBeIsSaid) {
  const auto expect_fault = [](const job::Model& model,
                               const std::string& fault) {
    EXPECT_THAT(ResolveGraph(model).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(fault)));
  };
  const std::string no = "trainable: false";
  expect_fault(Tower(no, no, no), "none is trainable: nothing to train");
  for (const char* const multiplier : {"0", "-1", "nan", "inf"}) {
    expect_fault(
        Tower("", absl::StrCat("learning_rate_multiplier: ", multiplier), ""),
        absl::StrCat("model.layer[1] \"b\": learning_rate_multiplier: ",
                     multiplier, " is not a number above 0"));
  }
  const std::string lookup =
      "input { name: 'user' ids {} } sparse_table { name: 'users' width: 3 } "
      "layer { name: 'e' embedding_bag { table: 'users' } ";
  expect_fault(Classifier(lookup + "trainable: false }"),
               "model.layer[0] \"e\": trainable: the rows that the layer reads "
               "are those of model.sparse_table \"users\": set it there");
  expect_fault(Classifier(lookup + "optimizer { sgd {} } }"),
               "optimizer: the rows that the layer reads");
  expect_fault(Classifier("input_shape: 3 layer { activation: RELU optimizer { "
                          "sgd {} } }"),
               "optimizer: the layer has no variables to train");
  expect_fault(Classifier(lookup + "learning_rate_multiplier: 2 }"),
               "learning_rate_multiplier: the rows that the layer reads");
}

class FrozenModelTest : public ModelTestBase {};

TEST_P(FrozenModelTest, FrozenVariablesHaveNoGradientsAndOthersTheSame) {
  const Batch batch = RandomBatch(7, {6}, 4);
  const std::unique_ptr<Model> whole = Make(Tower("", "", ""));
  const Values values = RandomValues(*whole);
  SetAll(*whole, values);
  const Values want = GradientsOf(*whole, batch);
  for (const int frozen : {0, 1, 2}) {
    SCOPED_TRACE(frozen);
    std::vector<std::string> fields(3);
    fields[frozen] = "trainable: false";
    const std::unique_ptr<Model> model =
        Make(Tower(fields[0], fields[1], fields[2]));
    SetAll(*model, values);
    const Values got = GradientsOf(*model, batch);
    for (int i = 0; i < 6; ++i) {
      if (i / 2 == frozen) {
        EXPECT_THAT(got[i], IsEmpty()) << i;
      } else {
        EXPECT_EQ(got[i], want[i]) << i;
      }
    }
  }
}

TEST_P(FrozenModelTest, AFrozenNormalizationIsThatOfEvaluation) {
  const auto spec = [](const std::string& normalization,
                       const std::string& last) {
    return Classifier(
        absl::StrCat("input_shape: 6 layer { name: 'a' dense { units: 5 } }"
                     "layer { name: 'n' batch_normalization {} ",
                     normalization,
                     " } layer { activation: RELU }"
                     "layer { name: 'c' dense { units: 4 } ",
                     last, " }"));
  };
  const std::unique_ptr<Model> model = Make(spec("trainable: false", ""));
  Values values = RandomValues(*model);
  for (float& variance : values[5]) variance = 1 + variance * variance;
  SetAll(*model, values);
  const Batch batch = RandomBatch(7, {6}, 4);
  const Values gradients = GradientsOf(*model, batch);
  for (const int i : {2, 3, 4, 5}) EXPECT_THAT(gradients[i], IsEmpty()) << i;
  // The loss is what an evaluation gives, and so are its differences.
  ASSERT_OK_AND_ASSIGN(const BatchResult trained,
                       Train(*model, batch, IgnoreVariable));
  ASSERT_OK_AND_ASSIGN(const Evaluated evaluated, Evaluate(*model, batch));
  EXPECT_NEAR(trained.loss_sum, evaluated.loss_sum, 1e-5);
  constexpr float kStep = 1.f / 128;
  for (size_t i = 0; i < values[0].size(); i += 7) {
    double loss[2] = {};
    for (const int side : {0, 1}) {
      Values moved = values;
      moved[0][i] += side == 0 ? -kStep : kStep;
      SetAll(*model, moved);
      ASSERT_OK_AND_ASSIGN(const Evaluated at, Evaluate(*model, batch));
      loss[side] = at.loss_sum / batch.size;
    }
    EXPECT_NEAR(gradients[0][i], (loss[1] - loss[0]) / (2 * kStep), 2e-3) << i;
  }
}

TEST_P(FrozenModelTest, AFrozenTableIsReadAndHasNoGradients) {
  const auto spec = [](const std::string& field) {
    return Classifier(absl::StrCat(
        "input { name: 'user' ids {} }"
        "sparse_table { name: 'users' width: 3 ",
        field,
        " } layer { name: 'e' embedding_bag { table: 'users' l2: .5 } }"
        "layer { name: 'd' dense { units: 2 } }"));
  };
  const Batch batch = {.size = 2,
                       .ids = {{.offsets = {0, 1, 3}, .ids = {7, 9, 7}}},
                       .labels = {0, 1}};
  Values kernels;
  for (const std::string field : {"", "trainable: false"}) {
    SCOPED_TRACE(field);
    const std::unique_ptr<Model> model = Make(spec(field));
    SetAll(*model, RandomValues(*model));
    const std::unique_ptr<StagedBatch> staged = model->NewStagedBatch();
    ASSERT_OK(model->Stage(batch, *staged));
    ASSERT_EQ(staged->rows().size(), 1);
    EXPECT_THAT(staged->rows()[0].ids, UnorderedElementsAre(7, 9));
    for (size_t i = 0; i < 6; ++i) staged->rows()[0].values[i] = .25f * i;
    int called = 0;
    const auto take_variable = [&](size_t index,
                                   absl::Span<const float> gradient) {
      if (index == 0) kernels.emplace_back(gradient.begin(), gradient.end());
    };
    const auto take_rows = [&](size_t table, absl::Span<const uint64_t> ids,
                               absl::Span<const float> gradients) {
      ++called;
      EXPECT_EQ(table, 0);
      EXPECT_EQ(ids.size(), field.empty() ? 2 : 0);
      EXPECT_EQ(gradients.size(), field.empty() ? 6 : 0);
    };
    ASSERT_OK(model->Gradients(*staged, /*seed=*/1,
                               {.variable = take_variable, .rows = take_rows}));
    // The table counts the step.
    EXPECT_EQ(called, 1);
  }
  ASSERT_EQ(kernels.size(), 2);
  EXPECT_EQ(kernels[0], kernels[1]);
}

INSTANTIATE_TEST_SUITE_P(Devices, FrozenModelTest, DevicesUnderTest(),
                         DeviceName);

}  // namespace
}  // namespace parasol
