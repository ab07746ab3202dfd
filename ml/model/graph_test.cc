#include "ml/model/graph.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr char kLoss[] = " loss { sparse_categorical_crossentropy {} }";
constexpr char kDense[] = "layer { dense { units: 4 } } ";

absl::StatusOr<Graph> Resolve(const std::string& text) {
  job::Model model;
  EXPECT_TRUE(
      google::protobuf::TextFormat::ParseFromString(text + kLoss, &model));
  return ResolveGraph(model);
}

TEST(GraphTest, ALayerReadsWhatItNamesOrElseTheOneBeforeIt) {
  ASSERT_OK_AND_ASSIGN(
      const Graph graph,
      Resolve("input { name: 'a' dense { shape: 4 } }"
              "input { name: 'b' dense { shape: [2, 2] } }"
              "layer { name: 'left' input: 'a' dense { units: 3 } }"
              "layer { flatten {} input: 'b' }"
              "layer { name: 'right' dense { units: 3 } }"
              "layer { add {} input: ['right', 'left'] }"));
  ASSERT_THAT(graph.nodes, SizeIs(4));
  EXPECT_THAT(graph.nodes[0].inputs, ElementsAre(0));
  EXPECT_THAT(graph.nodes[1].inputs, ElementsAre(1));
  EXPECT_THAT(graph.nodes[2].inputs, ElementsAre(3));
  EXPECT_THAT(graph.nodes[3].inputs, ElementsAre(4, 2));
  EXPECT_EQ(graph.nodes[1].name, "flatten_1");
  EXPECT_EQ(graph.nodes[3].name, "add_3");
  EXPECT_EQ(graph.nodes[2].first_variable, 2);
  EXPECT_EQ(graph.output_width(), 3);
}

TEST(GraphTest, InputShapeIsOneInput) {
  ASSERT_OK_AND_ASSIGN(const Graph graph,
                       Resolve("input_shape: 3 layer { dense { units: 3 } }"
                               "layer { add {} input: ['dense_0', 'input'] }"));
  ASSERT_THAT(graph.inputs, SizeIs(1));
  EXPECT_EQ(graph.inputs[0].name, "input");
  EXPECT_THAT(graph.nodes[1].inputs, ElementsAre(1, 0));
}

TEST(GraphTest, AnInputOfColumnsHasTheirNumber) {
  ASSERT_OK_AND_ASSIGN(const Graph graph,
                       Resolve("input { name: 'n' dense { column { name: 'x' } "
                               "column { name: 'y' } } }" +
                               std::string(kDense)));
  EXPECT_THAT(graph.inputs[0].what.shape, ElementsAre(2));
}

TEST(GraphTest, InputsOfEachKindAreCounted) {
  ASSERT_OK_AND_ASSIGN(const Graph graph,
                       Resolve("input { name: 'a' dense { shape: 4 } }"
                               "input { name: 'b' dense { shape: 4 } }"
                               "layer { add {} input: ['a', 'b'] }" +
                               std::string(kDense)));
  EXPECT_EQ(graph.inputs[0].index, 0);
  EXPECT_EQ(graph.inputs[1].index, 1);
}

TEST(GraphTest, L2OfAVariableIsKept) {
  ASSERT_OK_AND_ASSIGN(
      const Graph graph,
      Resolve("input_shape: 3 layer { dense { units: 3 kernel_l2: .5 } }"));
  EXPECT_THAT(graph.variable_l2, ElementsAre(.5, 0));
}

TEST(GraphTest, WhatIsNotAGraphIsNamed) {
  struct Case {
    std::string name;
    std::string text;
    std::string want;
  };
  const std::string dense = kDense;
  const std::string two =
      "input { name: 'a' dense { shape: 4 } }"
      "input { name: 'b' dense { shape: 4 } }";
  std::string many = "input_shape: 4 ";
  for (int i = 0; i < 1001; ++i) many += "layer { activation: RELU }";
  const Case cases[] = {
      {"a later layer",
       "input_shape: 4 layer { add {} input: ['b', 'input'] }"
       "layer { name: 'b' dense { units: 4 } }",
       "model.layer[0] \"add_0\": input \"b\" is a later layer"},
      {"itself", "input_shape: 4 layer { name: 'b' add {} input: 'b' }",
       "model.layer[0] \"b\": input \"b\" is the layer itself"},
      {"nothing", "input_shape: 4 layer { dense { units: 4 } input: 'x' }",
       "input \"x\" is neither a layer before it nor an input of the model"},
      {"unused layer",
       "input_shape: 4 " + dense + "layer { dense { units: 4 } input: 'input'}",
       "model.layer[0] \"dense_0\": no layer reads its output"},
      {"unused input", two + "layer { dense { units: 4 } input: 'a' }",
       "model.input[1] \"b\": no layer reads it"},
      {"several inputs", two + dense, "the model has 2 inputs"},
      {"one name twice",
       two + "layer { name: 'b' dense { units: 4 } input: 'a' "
             "} layer { add {} input: ['b', 'a'] }",
       "an earlier layer or input is called b too"},
      {"two inputs of one name",
       "input { name: 'a' dense { shape: 4 } }"
       "input { name: 'a' dense { shape: 4 } }" +
           dense,
       "model.input[1] \"a\": an earlier input is called so too"},
      {"input without a name", "input { dense { shape: 4 } }" + dense,
       "a name is 1 to"},
      {"input without a kind", "input { name: 'a' }" + dense,
       "model.input[0] \"a\": has no kind"},
      {"input without a shape", "input { name: 'a' dense {} }" + dense,
       "dense.shape: is not set"},
      {"both", "input_shape: 4 " + two + dense, "model.input_shape"},
      {"ids into dense", "input { name: 'a' ids {} }" + dense,
       "is a list of ids"},
      {"too many layers", many + dense, "1002 of at most 1000"},
      {"shapes that differ",
       "input_shape: 4 layer { dense { units: 3 } }"
       "layer { add {} input: ['dense_0', 'input'] }",
       "model.layer[1] \"add_1\": inputs of shapes [3] and [4]"},
      {"l2", "input_shape: 4 layer { dense { units: 3 kernel_l2: -1 } }",
       "model.layer[0] \"dense_0\": kernel: an l2 of -1"},
      {"two l2 of one table",
       "input { name: 'a' ids {} } sparse_table { name: 't' width: 2 }"
       "layer { name: 'x' embedding_bag { table: 't' l2: .5 } input: 'a' }"
       "layer { name: 'y' embedding_bag { table: 't' l2: .25 } input: 'a' }"
       "layer { concatenate {} input: ['x', 'y'] } " +
           dense,
       "\"y\": l2 of table \"t\" is 0.25, in layer \"x\" it is 0.5"},
      {"no table",
       "input { name: 'a' ids {} }"
       "layer { embedding_bag { table: 'x' } } " +
           dense,
       "model.layer[0] \"embedding_bag_0\": table \"x\" is not in "
       "model.sparse_table"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    EXPECT_THAT(Resolve(c.text), StatusIs(absl::StatusCode::kInvalidArgument,
                                          HasSubstr(c.want)));
  }
}

TEST(GraphTest, OneL2OfATableThatSeveralLayersReadCountsOnce) {
  ASSERT_OK_AND_ASSIGN(
      const Graph graph,
      Resolve(
          "input { name: 'a' ids {} } sparse_table { name: 't' width: 2 }"
          "layer { name: 'x' embedding_bag { table: 't' l2: .5 } input: 'a' }"
          "layer { name: 'y' embedding_bag { table: 't' l2: .5 } input: 'a' }"
          "layer { concatenate {} input: ['x', 'y'] }"
          "layer { dense { units: 4 } }"));
  EXPECT_EQ(graph.tables[0].l2, .5);
}

constexpr char kHistory[] =
    "input { name: 'history' ids { sequence { length: 6 } } } "
    "sparse_table { name: 't' width: 3 } "
    "layer { name: 'e' input: 'history' embedding { table: 't' } } ";

TEST(GraphTest, ASequenceHasAMaskForTheLayersThatReadIt) {
  ASSERT_OK_AND_ASSIGN(
      const Graph graph,
      Resolve(absl::StrCat(
          kHistory,
          "layer { name: 'm' input: ['e', 'history.mask'] "
          "global_average_pool1d {} } "
          "layer { name: 'x' input: ['e', 'history.mask'] "
          "global_max_pool1d {} } layer { input: ['m', 'x'] add {} }")));
  ASSERT_THAT(graph.nodes, SizeIs(5));
  EXPECT_THAT(graph.nodes[0].layer->output_shape(), ElementsAre(6, 3));
  EXPECT_EQ(graph.nodes[1].name, "history.mask");
  EXPECT_THAT(graph.nodes[1].layer->output_shape(), ElementsAre(6));
  EXPECT_THAT(graph.nodes[2].inputs, ElementsAre(1, 2));
  EXPECT_THAT(graph.nodes[3].inputs, ElementsAre(1, 2)) << "made once";
  EXPECT_FALSE(graph.inputs[0].needs_each_column);
}

TEST(GraphTest, OnlySequencesHaveMasksAndTheirNamesAreTaken) {
  const auto is_invalid = [](const std::string& what) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what));
  };
  EXPECT_THAT(
      Resolve("input { name: 'a' dense { shape: [6, 3] } } "
              "layer { input: ['a', 'a.mask'] global_max_pool1d {} }" +
              std::string(kDense)),
      is_invalid("\"a.mask\" is neither a layer before it nor an input"));
  EXPECT_THAT(Resolve(absl::StrCat(kHistory,
                                   "layer { input: ['e', 'history.mas'] "
                                   "global_max_pool1d {} }")),
              is_invalid("did you mean \"history.mask\"?"));
  EXPECT_THAT(Resolve(absl::StrCat(kHistory,
                                   "layer { name: 'history.mask' "
                                   "global_max_pool1d {} }")),
              is_invalid("is the name of the mask of input \"history\""));
  EXPECT_THAT(Resolve("input { name: 'history.mask' dense { shape: 6 } } " +
                      std::string(kHistory)),
              is_invalid("is the name of the mask of input \"history\""));
  EXPECT_THAT(Resolve("input { name: 'h' ids { sequence { length: 0 } } } " +
                      std::string(kDense)),
              is_invalid("ids.sequence.length"));
}

}  // namespace
}  // namespace parasol
