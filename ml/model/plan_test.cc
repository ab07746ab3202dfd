#include "ml/model/plan.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ml/layer/conversion.h"
#include "ml/model/graph.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

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

// A residual block's normalization is no step behind which the sum reads its
// output again.
TEST(PlanTest, ATermsOnlyProducerComputesTheSumToo) {
  for (const char* const terms : {"['n', 'a']", "['a', 'n']"}) {
    const Plan plan = PlanOf(
        "layer { name: 'a' dense { units: 4 } }"
        "layer { name: 'b' dense { units: 4 } }"
        "layer { name: 'n' batch_normalization {} }"
        "layer { name: 's' add {} input: " +
        std::string(terms) +
        " } layer { activation: RELU } "
        "layer { name: 'd' dense { units: 4 } }");
    EXPECT_THAT(StepsOf(plan), ElementsAre("a", "b", "n", "d"));
    const PlanStep& sum = plan.steps[2];
    ASSERT_THAT(sum.inputs, SizeIs(2));
    EXPECT_EQ(sum.inputs[0]->index, 1);
    EXPECT_EQ(sum.inputs[1]->index, 0);
    EXPECT_FALSE(sum.layer->KeepsOutputGradient());
    EXPECT_THAT(BackwardOf(plan), ElementsAre("d", "n", "b", "+", "a"));
    // The term's gradient is the sum's, and the branch's is added to it.
    const BackwardOp& back = plan.backward[1];
    EXPECT_TRUE(back.has_input_gradients);
    EXPECT_EQ(back.dx[1], std::nullopt);
    EXPECT_EQ(plan.backward[2].from, *back.dx[0]);
    EXPECT_EQ(plan.backward[3].from, back.from);
  }
}

TEST(PlanTest, ASumIsAStepWhereNoTermsProducerCanComputeIt) {
  // Others read the normalization.
  EXPECT_THAT(StepsOf(PlanOf("layer { name: 'a' dense { units: 4 } }"
                             "layer { name: 'n' batch_normalization {} }"
                             "layer { name: 'b' dense { units: 4 } }"
                             "layer { name: 's' add {} input: ['b', 'n'] }"
                             "layer { name: 't' add {} input: ['s', 'n'] }")),
              ElementsAre("a", "n", "b", "s", "t"));
  // The other term comes later.
  EXPECT_THAT(StepsOf(PlanOf("layer { name: 'a' dense { units: 4 } }"
                             "layer { name: 'n' batch_normalization {} }"
                             "layer { name: 'b' dense { units: 4 } input: 'a' }"
                             "layer { name: 's' add {} input: ['n', 'b'] }")),
              ElementsAre("a", "n", "b", "s"));
  // Both terms are one; three terms.
  EXPECT_THAT(StepsOf(PlanOf("layer { name: 'n' batch_normalization {} }"
                             "layer { name: 's' add {} input: ['n', 'n'] }")),
              ElementsAre("n", "s"));
  EXPECT_THAT(
      StepsOf(PlanOf("layer { name: 'a' dense { units: 4 } }"
                     "layer { name: 'b' dense { units: 4 } input: 'a' }"
                     "layer { name: 'n' batch_normalization {} }"
                     "layer { name: 's' add {} input: ['n', 'a', 'b'] }")),
      ElementsAre("a", "b", "n", "s"));
  // It has a relu, or is not trained.
  EXPECT_THAT(StepsOf(PlanOf("layer { name: 'a' dense { units: 4 } }"
                             "layer { name: 'n' batch_normalization {} }"
                             "layer { activation: RELU name: 'r' }"
                             "layer { name: 's' add {} input: ['r', 'a'] }")),
              ElementsAre("a", "n", "s"));
  EXPECT_THAT(StepsOf(PlanOf(
                  "layer { name: 'a' dense { units: 4 } }"
                  "layer { name: 'n' batch_normalization {} trainable: false }"
                  "layer { name: 's' add {} input: ['n', 'a'] }")),
              ElementsAre("a", "n", "s"));
}

// The steps behind it have the seeds of a plan where the sum is a step.
TEST(PlanTest, ASumThatIsComputedByItsTermKeepsItsNumber) {
  job::Model model;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "input_shape: 4 layer { name: 'a' dense { units: 4 } }"
      "layer { name: 'b' dense { units: 4 } }"
      "layer { name: 'n' batch_normalization {} }"
      "layer { name: 's' add {} input: ['n', 'a'] }"
      "layer { name: 'd' dense { units: 4 } }"
      "loss { sparse_categorical_crossentropy {} }",
      &model));
  ASSERT_OK_AND_ASSIGN(const Graph graph, ResolveGraph(model));
  const Plan joined = MakePlan(graph);
  EXPECT_THAT(StepsOf(joined), ElementsAre("a", "b", "n", "d"));
  EXPECT_EQ(joined.steps[2].number, 2);
  EXPECT_EQ(joined.steps[3].number, 4);
  // Terms of two types would not stay what they are.
  const Plan plain = MakePlan(graph, EdgeType::kBfloat16);
  EXPECT_THAT(StepsOf(plain), ElementsAre("a", "b", "n", "s", "d"));
  EXPECT_EQ(plain.steps[4].number, 4);
}

// Of two terms that can, the later one computes the sum.
TEST(PlanTest, TheLaterOfTwoNormalizationsComputesTheirSum) {
  const Plan plan = PlanOf(
      "layer { name: 'a' dense { units: 4 } }"
      "layer { name: 'm' batch_normalization {} }"
      "layer { name: 'n' batch_normalization {} input: 'a' }"
      "layer { name: 's' add {} input: ['m', 'n'] }");
  EXPECT_THAT(StepsOf(plan), ElementsAre("a", "m", "n"));
  EXPECT_EQ(plan.steps[2].inputs[1]->index, 1);
  EXPECT_EQ(plan.outputs.front().step, 2);
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

// The gradient by an input that two layers read is a sum; a term of a sum
// passes its own on, which stays to the end.
TEST(PlanTest, AGradientByAnInputIsInUseBehindTheLastOperation) {
  job::Model model;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "input { name: 'x' dense { shape: 4 } }"
      "input { name: 'z' dense { shape: 4 } }"
      "layer { name: 'a' dense { units: 4 } input: 'x' }"
      "layer { name: 's' add {} input: ['a', 'x', 'z'] }"
      "loss { sparse_categorical_crossentropy {} }",
      &model));
  const Graph graph = ResolveGraph(model).value();
  PlannedGradients gradients = GradientsOfTraining(graph);
  EXPECT_THAT(gradients.inputs, ElementsAre(false, false));
  EXPECT_THAT(MakePlan(graph, gradients).input_gradients,
              ElementsAre(std::nullopt, std::nullopt));
  gradients.inputs = {true, true};
  const Plan plan = MakePlan(graph, gradients);
  EXPECT_THAT(BackwardOf(plan), ElementsAre("s", "a", "+"));
  ASSERT_TRUE(plan.input_gradients[0].has_value());
  ASSERT_TRUE(plan.input_gradients[1].has_value());
  EXPECT_EQ(plan.input_gradients[0], plan.backward[2].to);
  EXPECT_EQ(plan.input_gradients[1], plan.backward[0].from);
  EXPECT_NE(plan.input_gradients[0], plan.input_gradients[1]);
  for (const std::optional<size_t>& buffer : plan.input_gradients) {
    EXPECT_EQ(plan.buffers[*buffer].last_op, plan.backward.size());
  }
}

TEST(PlanTest, NothingIsComputedOfGradientsThatAreNotWanted) {
  job::Model model;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "input_shape: 4 layer { name: 'a' dense { units: 4 } }"
      "layer { name: 'b' dense { units: 4 } }"
      "layer { name: 'c' dense { units: 4 } }"
      "loss { sparse_categorical_crossentropy {} }",
      &model));
  const Graph graph = ResolveGraph(model).value();
  PlannedGradients gradients = GradientsOfTraining(graph);
  gradients.variables = {false, false, false, true, false, false};
  const Plan plan = MakePlan(graph, gradients);
  EXPECT_THAT(BackwardOf(plan), ElementsAre("c", "b"));
  EXPECT_FALSE(plan.steps[2].changes_variables);
  EXPECT_FALSE(plan.backward[1].has_input_gradients);
  gradients.outputs = {false};
  EXPECT_THAT(BackwardOf(MakePlan(graph, gradients)), ElementsAre());
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

Graph GraphOf(const std::string& layers) {
  job::Model model;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      layers + " loss { sparse_categorical_crossentropy {} }", &model));
  return ResolveGraph(model).value();
}

bool IsConversion(const PlanStep& step) {
  return dynamic_cast<const Conversion*>(step.layer.get()) != nullptr;
}

// "conv b", "to b", "to f": a step's name, or that it converts, and the type of
// its output.
std::vector<std::string> TypedStepsOf(const Plan& plan) {
  std::vector<std::string> steps;
  for (const PlanStep& step : plan.steps) {
    steps.push_back((IsConversion(step) ? "to" : step.name) +
                    (step.type == EdgeType::kBfloat16 ? " b" : " f"));
  }
  return steps;
}

// Every tensor that a step reads has the type of the step's output, but for
// conversions, and every gradient its tensor's type.
void ExpectConsistent(const Plan& plan) {
  const auto type_of = [&](const PlanTensor& tensor) {
    return tensor.is_input ? EdgeType::kFloat32 : plan.steps[tensor.index].type;
  };
  for (const PlanStep& step : plan.steps) {
    for (const std::optional<PlanTensor>& input : step.inputs) {
      if (!input) continue;
      EXPECT_EQ(type_of(*input) == step.type, !IsConversion(step));
    }
  }
  for (const BackwardOp& op : plan.backward) {
    if (op.kind != BackwardOp::Kind::kStep) {
      EXPECT_EQ(plan.buffers[op.from].type, plan.buffers[op.to].type);
      continue;
    }
    const PlanStep& step = plan.steps[op.step];
    EXPECT_EQ(plan.buffers[op.from].type, step.type) << step.name;
    for (size_t i = 0; i < op.dx.size(); ++i) {
      if (!op.dx[i]) continue;
      EXPECT_EQ(plan.buffers[*op.dx[i]].type, type_of(*step.inputs[i]));
    }
  }
  for (const PlanOutput& output : plan.outputs) {
    EXPECT_EQ(plan.steps[output.step].type, EdgeType::kFloat32);
    if (!output.gradient) continue;
    EXPECT_EQ(plan.buffers[*output.gradient].type, EdgeType::kFloat32);
  }
}

constexpr char kResidual[] = R"(
  input_shape: [8, 8, 3]
  layer { name: "stem" conv2d { filters: 4 kernel_size: 3 padding: SAME } }
  layer { name: "norm" batch_normalization {} }
  layer { name: "relu" activation: RELU }
  layer { name: "conv" conv2d { filters: 4 kernel_size: 3 padding: SAME use_bias: false } }
  layer { name: "norm2" batch_normalization {} }
  layer { name: "half" input: "relu" average_pool { pool_size: 1 } }
  layer { name: "pad" pad { before: [0, 0, 0] after: [0, 0, 0] } }
  layer { name: "sum" input: ["norm2", "pad"] add {} }
  layer { name: "relu2" activation: RELU }
  layer { name: "max" max_pool { pool_size: 2 } }
  layer { name: "mean" global_average_pool {} }
  layer { name: "logits" dense { units: 3 } }
)";

TEST(EdgeTypesTest, OnlyTheBordersOfImagesAreConverted) {
  const Plan plan = MakePlan(GraphOf(kResidual), EdgeType::kBfloat16);
  EXPECT_THAT(
      TypedStepsOf(plan),
      ElementsAre("to b", "stem b", "norm b", "conv b", "norm2 b", "half b",
                  "pad b", "sum b", "max b", "mean b", "to f", "logits f"));
  ExpectConsistent(plan);
}

TEST(EdgeTypesTest, OtherDevicesHaveNoConversion) {
  const Graph graph = GraphOf(kResidual);
  const Plan plan = MakePlan(graph);
  EXPECT_THAT(TypedStepsOf(plan),
              ElementsAre("stem f", "norm f", "conv f", "norm2 f", "half f",
                          "pad f", "sum f", "max f", "mean f", "logits f"));
  ExpectConsistent(plan);
}

TEST(EdgeTypesTest, WithoutAConvolutionAllIsFloat32) {
  const Plan plan =
      MakePlan(GraphOf("input_shape: 4 layer { name: 'a' dense { units: 4 } }"
                       "layer { name: 'norm' batch_normalization {} }"
                       "layer { name: 'b' dense { units: 3 } }"),
               EdgeType::kBfloat16);
  EXPECT_THAT(TypedStepsOf(plan), ElementsAre("a f", "norm f", "b f"));
}

TEST(EdgeTypesTest, AnOutputThatIsBfloat16IsConvertedForItsLoss) {
  const Plan plan = MakePlan(
      GraphOf("input_shape: [2, 2, 3]"
              "layer { name: 'conv' conv2d { filters: 3 kernel_size: 2 } }"
              "layer { flatten {} }"),
      EdgeType::kBfloat16);
  EXPECT_THAT(TypedStepsOf(plan), ElementsAre("to b", "conv b", "to f"));
  EXPECT_EQ(plan.outputs.front().step, 2);
  ExpectConsistent(plan);
}

// A dense layer in between; both its readers and the convolution's read one
// conversion.
TEST(EdgeTypesTest, ATensorIsConvertedOnceForAllOfItsReaders) {
  const Plan plan = MakePlan(
      GraphOf(
          "input_shape: [4, 4, 2]"
          "layer { name: 'a' conv2d { filters: 2 kernel_size: 1 } }"
          "layer { name: 'b' input: 'a' dropout { rate: 0.5 } }"
          "layer { name: 'c' input: 'a' dropout { rate: 0.5 } }"
          "layer { name: 'd' input: 'b' conv2d { filters: 2 kernel_size: 1 } }"
          "layer { name: 'sum' input: ['c', 'd', 'b'] add {} }"
          "layer { flatten {} } layer { name: 'e' dense { units: 3 } }"),
      EdgeType::kBfloat16);
  EXPECT_THAT(TypedStepsOf(plan),
              ElementsAre("to b", "a b", "to f", "b f", "c f", "to b", "d b",
                          "to f", "sum f", "e f"));
  ExpectConsistent(plan);
}

// What layers draw does not change with types.
TEST(EdgeTypesTest, StepsKeepTheirNumbers) {
  const Graph graph = GraphOf(kResidual);
  std::map<std::string, size_t> numbers;
  for (const PlanStep& step : MakePlan(graph).steps) {
    numbers[step.name] = step.number;
  }
  EXPECT_THAT(numbers, SizeIs(10));
  EXPECT_EQ(numbers.at("logits"), 9);
  for (const PlanStep& step : MakePlan(graph, EdgeType::kBfloat16).steps) {
    if (IsConversion(step)) continue;
    EXPECT_EQ(step.number, numbers.at(step.name));
  }
}

// The bytes of what lies between layers, for one example.
int64_t BytesBetween(const Plan& plan) {
  int64_t bytes = 0;
  for (const PlanStep& step : plan.steps) {
    bytes += step.outputs * BytesOf(step.type);
  }
  for (const GradientBuffer& buffer : plan.buffers) {
    bytes += buffer.elements * BytesOf(buffer.type);
  }
  return bytes;
}

TEST(EdgeTypesTest, ImagesTakeHalfOfTheRoom) {
  const Graph graph = GraphOf(kResidual);
  // The copy of the input and a few numbers of the last layers are more.
  constexpr int64_t kMore = 8 * 8 * 3 * 2 + 100;
  EXPECT_LE(BytesBetween(MakePlan(graph, EdgeType::kBfloat16)),
            BytesBetween(MakePlan(graph)) / 2 + kMore);
}

}  // namespace
}  // namespace parasol
