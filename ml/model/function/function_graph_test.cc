#include "ml/model/function/function_graph.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/model/testing/model_fixture.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> VariablesOf(const Graph& graph) {
  std::vector<std::string> names;
  for (const VariableSpec& variable : graph.variables) {
    names.push_back(variable.name);
  }
  return names;
}

TEST(FunctionGraphTest, NeedsNoLossAndTakesTheLastLayersOutputOfAnyShape) {
  ASSERT_OK_AND_ASSIGN(
      const Graph graph,
      ResolveFunction(ParseModel("input_shape: 3 layer { dense { units: 8 } }"
                                 "layer { reshape { shape: [2, 2, 2] } }")));
  ASSERT_EQ(graph.outputs.size(), 1);
  EXPECT_FALSE(graph.has_named_outputs());
  EXPECT_EQ(graph.output_width(), 8);
  EXPECT_EQ(graph.output_values, std::vector<size_t>{2});
}

TEST(FunctionGraphTest, LossesAndLabelsOfAJobsModelAreNotLookedAt) {
  ASSERT_OK_AND_ASSIGN(
      const Graph graph,
      ResolveFunction(ParseModel(
          "input_shape: 3 layer { name: 'a' dense { units: 2 } }"
          "layer { name: 'b' dense { units: 2 } }"
          "output { name: 'a' weight: -3 loss { mean_squared_error {} } }"
          "output { name: 'last' layer: 'b' }"
          "loss { binary_crossentropy {} } metric { auc {} }")));
  ASSERT_EQ(graph.outputs.size(), 2);
  EXPECT_EQ(graph.outputs[0].name, "a");
  EXPECT_EQ(graph.outputs[1].name, "last");
}

TEST(FunctionGraphTest, NothingNeedsToBeTrained) {
  EXPECT_OK(
      ResolveFunction(ParseModel("input_shape: 3 layer { activation: RELU }")));
  EXPECT_OK(ResolveFunction(ParseModel(
      "input_shape: 3 layer { dense { units: 2 } trainable: false }")));
}

TEST(FunctionGraphTest, NamesBeginWithThePrefix) {
  ASSERT_OK_AND_ASSIGN(
      const Graph graph,
      ResolveFunction(
          ParseModel("input { name: 'i' ids {} } sparse_table { name: 't' "
                     "width: 3 } layer { embedding_bag { table: 't' } }"
                     "layer { dense { units: 2 } }"
                     "layer { name: 'out' dense { units: 2 } }"),
          "generator"));
  EXPECT_THAT(VariablesOf(graph),
              ElementsAre("generator/dense_1/kernel", "generator/dense_1/bias",
                          "generator/out/kernel", "generator/out/bias"));
  EXPECT_EQ(graph.nodes[0].name, "generator/embedding_bag_0");
  EXPECT_EQ(graph.nodes[0].table, 0);
  EXPECT_EQ(graph.tables[0].name, "generator/t");
}

TEST(FunctionGraphTest, WhatCannotBeIsSaid) {
  const auto expect_fault = [](const std::string& model,
                               const std::string& fault,
                               const std::string& prefix = "") {
    EXPECT_THAT(ResolveFunction(ParseModel(model), prefix).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(fault)));
  };
  expect_fault("input_shape: 3", "model.layer: is empty");
  expect_fault("input_shape: 3 layer { flatten {} }",
               "layer \"flatten_0\" only passes an input of the model on");
  expect_fault("input_shape: 3 layer { dense {} }", "units");
  expect_fault(
      "input_shape: 3 layer { name: 'a' dense { units: 2 } } layer { dense { "
      "units: 2 } } output { name: 'b' layer: 'aa' } output { name: 'dense_1' "
      "}",
      "model.output[0] \"b\": layer \"aa\" is no layer of the model");
  expect_fault(
      "input_shape: 3 layer { name: 'a' dense { units: 2 } } output { name: "
      "'a' } output { name: 'a' }",
      "an earlier output is called so too");
  expect_fault("input_shape: 3 layer { dense { units: 2 } }",
               "the model's name \"a b\": a name is 1 to 200 letters", "a b");
}

}  // namespace
}  // namespace parasol
