#include "ml/model/plan.h"

#include <string>
#include <vector>

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ml/model/graph.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;

Plan PlanOf(const std::string& layers) {
  job::Model model;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "input_shape: 4 " + layers +
          " loss { sparse_categorical_crossentropy {} }",
      &model));
  return MakePlan(ResolveGraph(model).value());
}

// "step dense_1", "add", "copy".
std::vector<std::string> BackwardOf(const Plan& plan) {
  std::vector<std::string> ops;
  for (const BackwardOp& op : plan.backward) {
    switch (op.kind) {
      case BackwardOp::Kind::kStep:
        ops.push_back(plan.steps[op.step].name);
        break;
      case BackwardOp::Kind::kAdd:
        ops.push_back("+");
        break;
      case BackwardOp::Kind::kCopy:
        ops.push_back("copy");
        break;
    }
  }
  return ops;
}

std::vector<std::string> StepsOf(const Plan& plan) {
  std::vector<std::string> steps;
  for (const PlanStep& step : plan.steps) steps.push_back(step.name);
  return steps;
}

TEST(PlanTest, AViewComputesNothing) {
  const Plan plan = PlanOf(
      "layer { flatten {} } layer { name: 'a' dense { units: 4 } }"
      "layer { activation: ACTIVATION_UNSPECIFIED }"
      "layer { name: 'b' dense { units: 4 } } layer { flatten {} }");
  EXPECT_THAT(StepsOf(plan), ElementsAre("a", "b"));
  EXPECT_TRUE(plan.steps[0].inputs[0]->is_input);
  EXPECT_EQ(plan.steps[1].inputs[0]->index, 0);
  EXPECT_EQ(plan.outputs.front().step, 1);
}

TEST(PlanTest, ARelusOnlyProducerComputesItToo) {
  const Plan plan = PlanOf(
      "layer { name: 'a' dense { units: 4 } } layer { flatten {} }"
      "layer { activation: RELU } layer { name: 'b' dense { units: 4 } }");
  EXPECT_THAT(StepsOf(plan), ElementsAre("a", "b"));
  EXPECT_FALSE(plan.steps[0].layer->KeepsOutputGradient());
}

TEST(PlanTest, AReluOfWhatOthersReadIsAStep) {
  const Plan plan = PlanOf(
      "layer { name: 'a' dense { units: 4 } }"
      "layer { name: 'r' activation: RELU }"
      "layer { name: 's' add {} input: ['a', 'r'] }");
  EXPECT_THAT(StepsOf(plan), ElementsAre("a", "r", "s"));
}

TEST(PlanTest, NothingIsComputedBelowTheFirstLayerThatIsTrained) {
  const Plan plan = PlanOf(
      "layer { name: 'r' activation: RELU }"
      "layer { name: 'a' dense { units: 4 } }");
  EXPECT_THAT(BackwardOf(plan), ElementsAre("a"));
  EXPECT_FALSE(plan.backward[0].has_input_gradients);
  EXPECT_EQ(plan.backward[0].dx[0], std::nullopt);
}

TEST(PlanTest, TheSecondGradientOfAnOutputIsAddedToTheFirst) {
  const Plan plan = PlanOf(
      "layer { name: 'a' dense { units: 4 } }"
      "layer { name: 'b' dense { units: 4 } }"
      "layer { name: 'c' dense { units: 4 } input: 'a' }"
      "layer { name: 's' add {} input: ['b', 'c'] }");
  EXPECT_THAT(BackwardOf(plan), ElementsAre("s", "c", "b", "+", "a"));
}

// A block of a residual net: a sum's terms have its own gradient, and the
// branch's gradient is added to it in place.
TEST(PlanTest, ASumPassesItsGradientOnWithoutACopy) {
  const Plan plan = PlanOf(
      "layer { name: 'a' dense { units: 4 activation: RELU } }"
      "layer { name: 'b' dense { units: 4 activation: RELU } }"
      "layer { name: 'c' dense { units: 4 } }"
      "layer { name: 's' add {} input: ['c', 'a'] }"
      "layer { activation: RELU } layer { name: 'd' dense { units: 4 } }");
  EXPECT_THAT(StepsOf(plan), ElementsAre("a", "b", "c", "s", "d"));
  EXPECT_THAT(BackwardOf(plan), ElementsAre("d", "s", "c", "b", "+", "a"));
  const BackwardOp& sum = plan.backward[1];
  const BackwardOp& branch = plan.backward[2];
  EXPECT_FALSE(sum.has_input_gradients);
  EXPECT_EQ(branch.from, sum.from);
  EXPECT_EQ(plan.backward[4].from, sum.from);
  EXPECT_EQ(plan.backward[5].from, plan.backward[4].to);
}

// `a` changes the gradient by its output in place, which `b` still reads.
TEST(PlanTest, AGradientThatALayerChangesIsItsOwn) {
  const Plan plan = PlanOf(
      "layer { name: 'b' dense { units: 4 } }"
      "layer { name: 'a' dense { units: 4 activation: RELU } input: 'input' }"
      "layer { name: 's' add {} input: ['a', 'b'] }");
  EXPECT_THAT(BackwardOf(plan), ElementsAre("s", "copy", "a", "b"));
  EXPECT_NE(plan.backward[2].from, plan.backward[3].from);
}

TEST(PlanTest, ASumOfOneThingTwiceHasTwiceTheGradient) {
  const Plan plan = PlanOf(
      "layer { name: 'a' dense { units: 4 } }"
      "layer { name: 's' add {} input: ['a', 'a'] }");
  EXPECT_THAT(BackwardOf(plan), ElementsAre("s", "+", "a"));
  EXPECT_EQ(plan.backward[1].from, plan.backward[1].other);
}

TEST(PlanTest, ABufferIsInUseFromItsFirstWriterToItsLastReader) {
  const Plan plan = PlanOf(
      "layer { name: 'a' dense { units: 4 } }"
      "layer { name: 'b' dense { units: 4 } }"
      "layer { name: 'c' dense { units: 4 } }");
  ASSERT_EQ(plan.buffers.size(), 3);
  EXPECT_EQ(plan.buffers[0].last_op, 0);
  EXPECT_EQ(plan.buffers[1].first_op, 0);
  EXPECT_EQ(plan.buffers[1].last_op, 1);
  EXPECT_EQ(plan.buffers[2].first_op, 1);
}

}  // namespace
}  // namespace parasol
