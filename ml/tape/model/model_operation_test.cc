#include "ml/tape/model/model_operation.h"

#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/device/device.h"
#include "ml/device/testing/device_fixture.h"
#include "ml/kernel/testing/reference.h"
#include "ml/model/function/function_graph.h"
#include "ml/model/testing/model_fixture.h"
#include "ml/tape/elementwise.h"
#include "ml/tape/reduce.h"
#include "ml/tape/tape.h"
#include "ml/tape/tensor.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr float kStep = .01f;
constexpr double kTolerance = 5e-3;

constexpr char kGenerator[] =
    "input_shape: 3 layer { dense { units: 6 activation: TANH } }"
    "layer { batch_normalization {} } layer { dense { units: 4 } }"
    "layer { reshape { shape: [2, 2] } }";
constexpr char kDiscriminator[] =
    "input_shape: [2, 2] layer { flatten {} }"
    "layer { dense { units: 5 activation: SIGMOID } }"
    "layer { dropout { rate: .25 } } layer { dense { units: 1 } }";

std::vector<float> Random(int64_t size, uint32_t seed) {
  const reference::Matrix m = RandomMatrix(1, size, seed);
  return {m.values.begin(), m.values.end()};
}

TensorShape ShapeOf(const VariableSpec& variable) {
  return TensorShape(absl::MakeConstSpan(variable.shape));
}

// A model and the values of its variables, as a program keeps them.
struct Net {
  Net(const std::string& name, const std::string& layers, Device& device)
      : operation(*ModelOperation::Create(
            name, *ResolveFunction(ParseModel(layers), name), device)) {
    for (const VariableSpec& variable : operation->graph().variables) {
      std::vector<float>& value =
          values.emplace_back(Random(variable.elements(), 1 + values.size()));
      for (float& element : value) {
        element = variable.trained ? .5f * element : 1 + .25f * element;
      }
    }
  }

  // Reads of all variables.
  std::vector<Tensor> Leaves() const {
    std::vector<Tensor> leaves;
    for (size_t i = 0; i < values.size(); ++i) {
      const VariableSpec& variable = operation->graph().variables[i];
      leaves.push_back(Leaf(&values[i],
                            Tensor::Of(values[i], ShapeOf(variable)),
                            variable.trained));
    }
    return leaves;
  }

  Tensor Call(const Tensor& input, uint64_t seed = 1, bool training = true) {
    const std::vector<Tensor> leaves = Leaves();
    return operation
        ->Call({.inputs = absl::MakeConstSpan(&input, 1),
                .variables = leaves,
                .training = training,
                .seed = seed})
        .outputs[0];
  }

  std::unique_ptr<ModelOperation> operation;
  std::vector<std::vector<float>> values;
};

class ModelOperationTest : public DeviceTest {
 protected:
  // Compares gradients by a net's variables with differences of `loss`.
  static void ExpectDifferences(Net& net, const std::vector<Tensor>& gradients,
                                const std::function<Tensor()>& loss) {
    ASSERT_EQ(gradients.size(), net.values.size());
    for (size_t i = 0; i < net.values.size(); ++i) {
      const VariableSpec& variable = net.operation->graph().variables[i];
      if (!variable.trained) continue;
      SCOPED_TRACE(variable.name);
      ASSERT_OK(gradients[i].status());
      for (size_t j = 0; j < net.values[i].size(); ++j) {
        float& element = net.values[i][j];
        const float before = element;
        element = before + kStep;
        const double above = loss().scalar();
        element = before - kStep;
        const double below = loss().scalar();
        element = before;
        const double want = (above - below) / (2 * double{kStep});
        EXPECT_NEAR(gradients[i].values()[j], want,
                    kTolerance * (1 + std::abs(want)))
            << j;
      }
    }
  }
};

TEST_P(ModelOperationTest, ALossOfTensorsHasGradientsByAllVariables) {
  Net net("g", kGenerator, device());
  const Tensor x = Tensor::Of(Random(15, 7), {5, 3});
  const auto loss = [&] {
    return ReduceMean(Square(net.Call(x * 2.f) - .3f), {}) + .5f;
  };
  GradientTape tape;
  const Tensor target = loss();
  ASSERT_OK(target.status());
  EXPECT_THAT(tape.WatchedVariables(), SizeIs(6));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> gradients,
                       tape.Gradient(target, net.Leaves()));
  ExpectDifferences(net, gradients, loss);
}

TEST_P(ModelOperationTest, CallsThatShareVariablesAddTheirGradients) {
  Net net("d", kDiscriminator, device());
  const Tensor real = Tensor::Of(Random(12, 7), {3, 2, 2});
  const Tensor fake = Tensor::Of(Random(20, 8), {5, 2, 2});
  const auto loss = [&] {
    const Tensor scores = net.Call(real, /*seed=*/3);
    return ReduceMean(Softplus(net.Call(fake, /*seed=*/4))) +
           ReduceMean(Softplus(-scores));
  };
  GradientTape tape;
  const Tensor target = loss();
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> gradients,
                       tape.Gradient(target, net.Leaves()));
  ExpectDifferences(net, gradients, loss);
}

// One forward pass of a GAN, of which two tapes take gradients by one model
// each; the generator's go through the discriminator.
TEST_P(ModelOperationTest, AGeneratorLearnsThroughTheDiscriminator) {
  Net generator("generator", kGenerator, device());
  Net discriminator("discriminator", kDiscriminator, device());
  const Tensor noise = Tensor::Of(Random(18, 7), {6, 3});
  const Tensor real = Tensor::Of(Random(24, 8), {6, 2, 2});
  struct Losses {
    Tensor generator, discriminator;
  };
  const auto losses = [&] {
    const Tensor fake_score = discriminator.Call(generator.Call(noise), 3);
    const Tensor real_score = discriminator.Call(real, 4);
    return Losses{.generator = ReduceMean(Softplus(-fake_score)),
                  .discriminator = ReduceMean(Softplus(fake_score)) +
                                   ReduceMean(Softplus(-real_score))};
  };
  GradientTape generator_tape;
  GradientTape discriminator_tape;
  const Losses of = losses();
  ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> by_generator,
      generator_tape.Gradient(of.generator, generator.Leaves()));
  ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> by_discriminator,
      discriminator_tape.Gradient(of.discriminator, discriminator.Leaves()));
  ExpectDifferences(generator, by_generator,
                    [&] { return losses().generator; });
  ExpectDifferences(discriminator, by_discriminator,
                    [&] { return losses().discriminator; });
}

TEST_P(ModelOperationTest, AnInputThatIsWatchedHasAGradientWithoutTraining) {
  Net net("d", kDiscriminator, device());
  std::vector<float> values = Random(12, 7);
  GradientTape tape({.watch_variables = false});
  const Tensor x = Tensor::Of(values, {3, 2, 2});
  tape.Watch(x);
  const Tensor target =
      ReduceSum(Square(net.Call(x, /*seed=*/1, /*training=*/false)));
  const Tensor gradient = tape.Gradient(target, x);
  ASSERT_OK(gradient.status());
  EXPECT_EQ(gradient.shape(), x.shape());
  for (size_t i = 0; i < values.size(); ++i) {
    const auto at = [&](float step) {
      std::vector<float> moved = values;
      moved[i] += step;
      return double{ReduceSum(Square(net.Call(Tensor::Of(moved, {3, 2, 2}), 1,
                                              /*training=*/false)))
                        .scalar()};
    };
    const double want = (at(kStep) - at(-kStep)) / (2 * double{kStep});
    EXPECT_NEAR(gradient.values()[i], want, kTolerance * (1 + std::abs(want)));
  }
}

TEST_P(ModelOperationTest, TablesHaveTheGradientsOfTheRowsThatWereRead) {
  Net net("t",
          "input { name: 'i' ids {} } sparse_table { name: 'rows' width: 2 }"
          "layer { embedding_bag { table: 'rows' } } layer { dense { units: 1 "
          "} }",
          device());
  std::vector<float> values = Random(10, 3);
  const Tensor ids = Tensor::Ints({0, 3, 3, 1}, {2, 2});
  int key = 0;
  const auto loss = [&] {
    const Tensor table = Leaf(&key, Tensor::Of(values, {5, 2}));
    const std::vector<Tensor> leaves = net.Leaves();
    return ReduceSum(
        Square(net.operation
                   ->Call({.ids = absl::MakeConstSpan(&ids, 1),
                           .variables = leaves,
                           .tables = absl::MakeConstSpan(&table, 1),
                           .training = true})
                   .outputs[0]));
  };
  GradientTape tape;
  const Tensor target = loss();
  const Tensor gradient =
      tape.Gradient(target, Leaf(&key, Tensor::Of(values, {5, 2})));
  ASSERT_OK(gradient.status());
  for (size_t i = 0; i < values.size(); ++i) {
    const float before = values[i];
    values[i] = before + kStep;
    const double above = loss().scalar();
    values[i] = before - kStep;
    const double below = loss().scalar();
    values[i] = before;
    const double want = (above - below) / (2 * double{kStep});
    EXPECT_NEAR(gradient.values()[i], want, kTolerance * (1 + std::abs(want)));
  }
  EXPECT_THAT(gradient.values().subspan(4, 2), Each(0.f));
  EXPECT_THAT(gradient.values().subspan(8), Each(0.f));
}

TEST_P(ModelOperationTest, ACallInTrainingSaysWhatMovingMomentsChangeBy) {
  Net net("n", "input_shape: 2 layer { batch_normalization { momentum: .75 } }",
          device());
  net.values = {{1, 1}, {0, 0}, {8, 0}, {1, 1}};
  const Tensor x = Tensor::Of({1, 2, 3, 6}, {2, 2});
  const std::vector<Tensor> leaves = net.Leaves();
  ModelOperation::Arguments arguments = {.inputs = absl::MakeConstSpan(&x, 1),
                                         .variables = leaves};
  EXPECT_THAT(net.operation->Call(arguments).changes, IsEmpty());
  arguments.training = true;
  const ModelOperation::Result result = net.operation->Call(arguments);
  ASSERT_THAT(result.changes, SizeIs(2));
  EXPECT_EQ(result.changes[0].variable, 2);
  EXPECT_THAT(result.changes[0].change.values(), ElementsAre(1.5f, -1.f));
  EXPECT_EQ(result.changes[1].variable, 3);
  EXPECT_THAT(result.changes[1].change.values(), ElementsAre(-.25f, -1.75f));
}

TEST_P(ModelOperationTest, RegularizationIsALossOfItsOwn) {
  Net net("r",
          "input_shape: 2 layer { dense { units: 2 kernel_l2: .5 } }"
          "layer { dense { units: 1 bias_l2: 2 } }",
          device());
  net.values = {{1, 2, 3, 4}, {5, 6}, {7, 8}, {3}};
  GradientTape tape;
  const Tensor loss = net.operation->RegularizationLoss(net.Leaves());
  EXPECT_EQ(loss.scalar(), .5f * 30 + 2 * 9);
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> gradients,
                       tape.Gradient(loss, net.Leaves()));
  EXPECT_THAT(gradients[0].values(), ElementsAre(1, 2, 3, 4));
  EXPECT_FALSE(gradients[1].connected());
  EXPECT_THAT(gradients[3].values(), ElementsAre(12));
}

// Outputs may end on another thread, long after the model.
TEST_P(ModelOperationTest, OutputsOutliveTheModelAndTheTape) {
  Tensor output;
  {
    Net net("g", kGenerator, device());
    GradientTape tape;
    output = net.Call(Tensor::Of(Random(6, 7), {2, 3}));
  }
  EXPECT_EQ(output.shape(), (TensorShape{2, 2, 2}));
  std::thread([moved = std::move(output)] {
    EXPECT_THAT(moved.values(), SizeIs(8));
  }).join();
}

// A replica that has no examples left takes part in its step all the same.
TEST_P(ModelOperationTest, NoExamplesHaveGradientsOfZero) {
  Net net("g", kGenerator, device());
  GradientTape tape;
  const Tensor output = net.Call(Zeros({0, 3}));
  ASSERT_OK(output.status());
  EXPECT_EQ(output.shape(), (TensorShape{0, 2, 2}));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> gradients,
                       tape.Gradient(ReduceSum(output), net.Leaves()));
  for (size_t i = 0; i < gradients.size(); ++i) {
    const VariableSpec& variable = net.operation->graph().variables[i];
    ASSERT_EQ(gradients[i].connected(), variable.trained) << variable.name;
    if (!variable.trained) continue;
    EXPECT_EQ(gradients[i].shape(), ShapeOf(variable));
    EXPECT_THAT(gradients[i].values(), Each(0.f));
  }
  const Tensor x = Zeros({0, 3});
  const std::vector<Tensor> leaves = net.Leaves();
  EXPECT_THAT(net.operation
                  ->Call({.inputs = absl::MakeConstSpan(&x, 1),
                          .variables = leaves,
                          .training = true})
                  .changes,
              IsEmpty());
}

// More calls than may be open at once.
TEST_P(ModelOperationTest, ACallIsKeptAsLongAsATapeNeedsIt) {
  Net net("g", kGenerator, device());
  const Tensor x = Tensor::Of(Random(6, 7), {2, 3});
  std::vector<Tensor> outputs;
  for (int i = 0; i < 1100; ++i) {
    GradientTape tape;
    outputs.push_back(net.Call(x));
    ASSERT_OK(tape.Gradient(ReduceSum(outputs.back()), net.Leaves()));
  }
  for (int i = 0; i < 1100; ++i) outputs.push_back(net.Call(x));
  for (const Tensor& output : outputs) ASSERT_OK(output.status());
  EXPECT_EQ(outputs.front().values(), outputs.back().values());
}

TEST_P(ModelOperationTest, AModelHasNoSecondDerivative) {
  Net net("d", kDiscriminator, device());
  const Tensor x = Tensor::Of(Random(12, 7), {3, 2, 2});
  GradientTape outer;
  GradientTape inner({.watch_variables = false});
  inner.Watch(x);
  const Tensor score = net.Call(x);
  const Tensor penalty = ReduceSum(Square(inner.Gradient(score, x)));
  ASSERT_OK(penalty.status());
  EXPECT_THAT(outer.Gradient(penalty, net.Leaves()).status(),
              StatusIs(absl::StatusCode::kUnimplemented,
                       AllOf(HasSubstr("model \"d\""),
                             HasSubstr("no second derivative"))));
}

TEST_P(ModelOperationTest, WhatDoesNotFitIsTheOutputsStatus) {
  Net net("g", kGenerator, device());
  // Another device than the CPU is named behind it.
  const std::string model =
      device().shares_host_memory() ? "model \"g\": " : "model \"g\"";
  const auto expect_fault = [&](const Tensor& output,
                                const std::string& fault) {
    EXPECT_THAT(output.status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr(model), HasSubstr(fault))));
  };
  expect_fault(net.Call(Zeros({5, 4})),
               "input \"input\" is [5, 4], not [3] behind an axis of examples");
  expect_fault(net.Call(Zeros({3})), "input \"input\" is [3]");
  expect_fault(net.Call(Tensor::Ints({1, 2, 3}, {1, 3})),
               "input \"input\" is int64, not float32");
  const Tensor error = Tensor::Error(absl::InvalidArgumentError("the cause"));
  expect_fault(net.Call(error), "the cause");
  std::vector<Tensor> leaves = net.Leaves();
  const Tensor x = Zeros({5, 3});
  leaves[0] = Zeros({6, 3});
  expect_fault(
      net.operation
          ->Call({.inputs = absl::MakeConstSpan(&x, 1), .variables = leaves})
          .outputs[0],
      "variable \"g/dense_0/kernel\" is [6, 3], not [3, 6]");
  leaves.pop_back();
  expect_fault(
      net.operation
          ->Call({.inputs = absl::MakeConstSpan(&x, 1), .variables = leaves})
          .outputs[0],
      absl::StrCat(leaves.size(), " variables, the model has ",
                   leaves.size() + 1));
}

INSTANTIATE_TEST_SUITE_P(Devices, ModelOperationTest, DevicesUnderTest(),
                         DeviceName);

}  // namespace
}  // namespace parasol
