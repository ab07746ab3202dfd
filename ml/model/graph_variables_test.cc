#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ml/model/graph.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

job::Model Parse(const std::string& text) {
  job::Model model;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &model));
  return model;
}

absl::StatusOr<std::vector<VariableSpec>> VariablesOf(const job::Model& spec) {
  ASSIGN_OR_RETURN(Graph graph, ResolveGraph(spec));
  return std::move(graph.variables);
}

constexpr char kLoss[] = " loss { sparse_categorical_crossentropy {} }";

TEST(GraphVariablesTest, ListsKernelBeforeBiasInTheOrderOfLayers) {
  ASSERT_OK_AND_ASSIGN(
      std::vector<VariableSpec> variables,
      VariablesOf(Parse(std::string("input_shape: [28, 28] layer { flatten {} }"
                                    "layer { dense { units: 512 } }"
                                    "layer { activation: RELU }"
                                    "layer { name: 'logits' "
                                    "        dense { units: 10 } }") +
                        kLoss)));
  ASSERT_THAT(variables, SizeIs(4));
  EXPECT_EQ(variables[0].name, "dense_1/kernel");
  EXPECT_THAT(variables[0].shape, ElementsAre(784, 512));
  EXPECT_EQ(variables[0].elements(), 784 * 512);
  EXPECT_EQ(variables[1].name, "dense_1/bias");
  EXPECT_THAT(variables[1].shape, ElementsAre(512));
  EXPECT_EQ(variables[2].name, "logits/kernel");
  EXPECT_EQ(variables[3].name, "logits/bias");
}

TEST(GraphVariablesTest, InitializersDefaultToGlorotUniformAndZeros) {
  ASSERT_OK_AND_ASSIGN(
      std::vector<VariableSpec> variables,
      VariablesOf(
          Parse(std::string("input_shape: 4 layer { dense { units: 2 } }"
                            "layer { dense { units: 2 "
                            "kernel_initializer { he_normal {} } "
                            "bias_initializer { constant { value: 1 } "
                            "} } }") +
                kLoss)));
  ASSERT_THAT(variables, SizeIs(4));
  EXPECT_TRUE(variables[0].initializer.has_glorot_uniform());
  EXPECT_TRUE(variables[1].initializer.has_zeros());
  EXPECT_TRUE(variables[2].initializer.has_he_normal());
  EXPECT_TRUE(variables[3].initializer.has_constant());
}

TEST(GraphVariablesTest, LayerWithoutBiasHasAKernelOnly) {
  ASSERT_OK_AND_ASSIGN(
      std::vector<VariableSpec> variables,
      VariablesOf(Parse(
          std::string(
              "input_shape: 4 layer { dense { units: 2 use_bias: false } }") +
          kLoss)));
  ASSERT_THAT(variables, SizeIs(1));
  EXPECT_EQ(variables[0].name, "dense_0/kernel");
}

TEST(GraphVariablesTest, WhatIsNotAModelIsNamed) {
  struct Case {
    std::string name;
    std::string text;
    std::string want;
  };
  const Case cases[] = {
      {"no input", "layer { dense { units: 2 } }", "input_shape: is not set"},
      {"no axis", "input_shape: [4, 0] layer { flatten {} }", "[4, 0]"},
      {"too large an input", "input_shape: [2147483647, 2]", "at most"},
      {"no kind", "input_shape: 4 layer { name: 'x' }",
       "model.layer[0] \"x\": has no kind"},
      {"no units", "input_shape: 4 layer { dense {} }",
       "dense.units is 0, not positive"},
      {"too large a kernel",
       "input_shape: 65536 layer { dense { units: 65536 } }", "kernel"},
      {"image into dense", "input_shape: [4, 4] layer { dense { units: 2 } }",
       "dense needs a flat input, not [4, 4]"},
      {"one name twice",
       "input_shape: 4 layer { name: 'a' dense { units: 2 } }"
       "layer { name: 'a' dense { units: 2 } }",
       "an earlier layer or input is called a too"},
      {"a name with a space",
       "input_shape: 4 layer { name: 'a b' dense { units: 2 } }",
       "letters, digits"},
      {"no variables", "input_shape: 4 layer { activation: RELU }",
       "nothing to train"},
      {"no layers", "input_shape: 4", "nothing to train"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    EXPECT_THAT(
        VariablesOf(Parse(c.text + kLoss)),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.want)));
  }
}

TEST(GraphVariablesTest, LossIsRequired) {
  EXPECT_THAT(
      VariablesOf(Parse("input_shape: 4 layer { dense { units: 2 } }")),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("model.loss")));
}

}  // namespace
}  // namespace parasol
