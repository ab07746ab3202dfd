#include "ml/model/variable_layout.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ml/model/graph.h"
#include "ml/model/plan.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;

// Dense layers of `units`, over 64 inputs.
Graph GraphOf(const std::vector<int>& units) {
  std::string text = "input_shape: 64 ";
  for (const int one : units) {
    absl::StrAppend(&text, "layer { dense { units: ", one, " } } ");
  }
  absl::StrAppend(&text, "loss { sparse_categorical_crossentropy {} }");
  job::Model model;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &model));
  return ResolveGraph(model).value();
}

TEST(VariableLayoutTest, VariablesFollowEachOtherAligned) {
  const VariableLayout layout = LayOutVariables(GraphOf({3, 5}));
  // Kernels of 192 and 15 elements, each with a bias.
  EXPECT_THAT(layout.offsets, ElementsAre(0, 192, 256, 320, 384));
  EXPECT_EQ(layout.size(), 384);
  EXPECT_THAT(layout.layer_begin, ElementsAre(0, 0, 2, 2));
}

TEST(VariableLayoutTest, ASmallModelIsOnePiece) {
  const VariableLayout layout = LayOutVariables(GraphOf({64, 64, 10}));
  EXPECT_THAT(layout.pieces, ElementsAre(VariableRange{0, 6}));
}

TEST(VariableLayoutTest, EqualLayersAreEqualPieces) {
  const VariableLayout layout =
      LayOutVariables(GraphOf({512, 512, 512, 512, 512, 512, 512, 512, 64}));
  ASSERT_EQ(layout.pieces.size(), VariableLayout::kMaxPieces);
  size_t next = 0;
  for (size_t i = 0; i < layout.pieces.size(); ++i) {
    const VariableRange& piece = layout.pieces[i];
    EXPECT_EQ(piece.begin, next);
    EXPECT_EQ(layout.layer_begin[piece.begin], piece.begin);
    next = piece.end;
    const int64_t elements =
        layout.offsets[piece.end] - layout.offsets[piece.begin];
    EXPECT_LT(elements, .36 * layout.size());
    for (size_t j = piece.begin; j < piece.end; ++j) {
      EXPECT_EQ(layout.piece_of[j], i);
    }
  }
  EXPECT_EQ(next, layout.piece_of.size());
}

// A layer is never cut, and a large one does not hold the others back.
TEST(VariableLayoutTest, ALargeLayerIsAPieceOfItsOwn) {
  const VariableLayout layout = LayOutVariables(GraphOf({8192, 10}));
  EXPECT_THAT(layout.pieces,
              ElementsAre(VariableRange{0, 2}, VariableRange{2, 4}));
}

TEST(VariableLayoutTest, APieceLeavesBehindItsFirstLayersStep) {
  const Graph graph = GraphOf({512, 512, 512, 512, 10});
  const Plan plan = MakePlan(graph);
  const VariableLayout layout = LayOutVariables(graph);
  ASSERT_GT(layout.pieces.size(), 1);
  const std::vector<std::vector<VariableRange>> behind =
      PiecesBehind(plan, layout.pieces);
  // The steps in the order of the backward pass, each with its variables.
  const std::vector<std::vector<VariableRange>> steps = VariablesBehind(plan);
  ASSERT_EQ(behind.size(), steps.size());
  size_t next = graph.variables.size();
  for (size_t i = 0; i < behind.size(); ++i) {
    if (behind[i].empty()) continue;
    ASSERT_EQ(behind[i].size(), 1);
    EXPECT_EQ(behind[i][0].end, next);
    EXPECT_EQ(behind[i][0].begin, steps[i][0].begin);
    next = behind[i][0].begin;
  }
  EXPECT_EQ(next, 0);
}

// Packs of gradients may end within a layer.
TEST(VariableLayoutTest, PiecesMayCutALayer) {
  const Graph graph = GraphOf({3, 2});
  ASSERT_EQ(graph.variables.size(), 4);
  const Plan plan = MakePlan(graph);
  std::vector<std::vector<VariableRange>> behind;
  for (const std::vector<VariableRange>& pieces :
       PiecesBehind(plan, {{3, 4}, {1, 3}, {0, 1}})) {
    if (!pieces.empty()) behind.push_back(pieces);
  }
  EXPECT_THAT(behind, ElementsAre(ElementsAre(VariableRange{3, 4}),
                                  ElementsAre(VariableRange{1, 3},
                                              VariableRange{0, 1})));
}

}  // namespace
}  // namespace parasol
