#include "tool/prediction/model_up_to.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ml/model/graph.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

job::Model Model() {
  job::Model model;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"pb(
        input {
          name: "x"
          dense {
            shape: 3
            column { name: "a" }
          }
        }
        input {
          name: "user"
          ids {
            column {
              name: "u"
              hash {}
            }
          }
        }
        input {
          name: "item"
          ids {
            column {
              name: "i"
              hash {}
            }
          }
        }
        sparse_table { name: "users" width: 4 }
        sparse_table { name: "items" width: 2 }
        layer {
          name: "u"
          input: "user"
          embedding { table: "users" }
        }
        layer {
          name: "i"
          input: "item"
          embedding { table: "items" }
        }
        layer {
          name: "flat_i"
          flatten {}
        }
        layer {
          name: "both"
          input: "flat_i"
          input: "x"
          concatenate {}
        }
        layer {
          name: "hidden"
          dense { units: 8 }
        }
        layer {
          name: "flat_u"
          input: "u"
          flatten {}
        }
        layer {
          name: "all"
          input: "hidden"
          input: "flat_u"
          concatenate {}
        }
        layer {
          name: "out"
          dense { units: 1 }
        }
        loss { binary_crossentropy {} }
      )pb",
      &model));
  return model;
}

std::vector<std::string> LayersOf(const job::Model& model) {
  std::vector<std::string> names;
  for (const job::Layer& layer : model.layer()) names.push_back(layer.name());
  return names;
}

TEST(ModelUpToTest, WhatTheLayerDoesNotReadIsGone) {
  ASSERT_OK_AND_ASSIGN(const job::Model part, ModelUpTo(Model(), "hidden"));
  EXPECT_THAT(LayersOf(part),
              ElementsAre("i", "flat_i", "both", "hidden", "hidden.flat"));
  EXPECT_EQ(part.input_size(), 2);
  ASSERT_EQ(part.sparse_table_size(), 1);
  EXPECT_EQ(part.sparse_table(0).name(), "items");
  ASSERT_OK_AND_ASSIGN(const Graph graph, ResolveGraph(part));
  EXPECT_EQ(graph.output_width(), 8);
  EXPECT_EQ(graph.variables.front().name, "hidden/kernel");
}

TEST(ModelUpToTest, EveryLayerMakesAModel) {
  const job::Model model = Model();
  for (const job::Layer& layer : model.layer()) {
    SCOPED_TRACE(layer.name());
    ASSERT_OK_AND_ASSIGN(const job::Model part, ModelUpTo(model, layer.name()));
    EXPECT_OK(ResolveGraph(part));
  }
  // An output that is no vector.
  ASSERT_OK_AND_ASSIGN(const job::Model part, ModelUpTo(Model(), "u"));
  ASSERT_OK_AND_ASSIGN(const Graph graph, ResolveGraph(part));
  EXPECT_EQ(graph.output_width(), 4);
}

TEST(ModelUpToTest, ASequenceOfWhichOnlyTheMaskIsReadStays) {
  job::Model model = Model();
  model.mutable_input(2)->mutable_ids()->mutable_sequence()->set_length(3);
  job::Layer& masked = *model.add_layer();
  masked.set_name("masked");
  masked.add_input("x");
  masked.add_input("item.mask");
  masked.mutable_add();
  ASSERT_OK_AND_ASSIGN(const job::Model part, ModelUpTo(model, "masked"));
  EXPECT_EQ(part.input_size(), 2);
  EXPECT_EQ(part.sparse_table_size(), 0);
  EXPECT_EQ(part.input(1).name(), "item");
}

TEST(ModelUpToTest, AnUnknownLayerIsNamedWithTheOneThatMayBeMeant) {
  EXPECT_THAT(ModelUpTo(Model(), "hiden"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("--layer=hiden"),
                             HasSubstr("did you mean \"hidden\"?"))));
}

}  // namespace
}  // namespace parasol
