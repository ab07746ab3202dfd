// Programs whose models compute on one CUDA device, or on two, have the figures
// of CPUs.

#include <cmath>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "loop/dataset.h"
#include "loop/model.h"
#include "loop/optimizer.h"
#include "loop/strategy.h"
#include "ml/device/testing/device_fixture.h"
#include "ml/tape/operations.h"
#include "ml/tape/tape.h"

namespace parasol::loop {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

// Sums in another order, over some steps.
constexpr float kTolerance = 2e-4;

std::unique_ptr<Strategy> On(const std::string& kind, int replicas) {
  std::vector<std::string> devices;
  for (int i = 0; i < replicas; ++i) {
    devices.push_back(absl::StrCat(kind, ":", i));
  }
  auto strategy = Strategy::Mirrored(devices, {.seed = 3});
  EXPECT_OK(strategy);
  return *std::move(strategy);
}

Tensor Waves(const TensorShape& shape) {
  std::vector<float> values;
  for (int64_t i = 0; i < shape.size(); ++i) {
    values.push_back(std::sin(1.f + static_cast<float>(i)));
  }
  return Tensor::Of(values, shape);
}

// What a program ends with: losses, and the values of variables by name.
struct Outcome {
  std::vector<float> losses;
  std::vector<std::string> names;
  std::vector<std::vector<float>> values;

  void AddValues(const std::vector<Variable>& variables) {
    for (const Variable& variable : variables) {
      const absl::Span<const float> value = variable.Read().values();
      names.push_back(variable.name());
      values.emplace_back(value.begin(), value.end());
    }
  }
};
using Train = std::function<absl::StatusOr<Outcome>(Strategy& strategy)>;

class CudaDevicesTest : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    const int there = static_cast<int>(Device::CudaNames().size());
    ASSERT_TRUE(there > 0 || std::getenv("PARASOL_REQUIRE_CUDA") == nullptr);
    if (there < GetParam()) {
      GTEST_SKIP() << GetParam() << " CUDA devices are needed, and " << there
                   << " are here";
    }
  }

  // Trains on the devices under test.
  static Outcome OnCuda(const Train& train) {
    return OutcomeOf(train, *On("cuda", GetParam()));
  }
  static Outcome OutcomeOf(const Train& train, Strategy& strategy) {
    const Strategy::Scope scope(strategy);
    absl::StatusOr<Outcome> outcome = train(strategy);
    EXPECT_OK(outcome);
    return outcome.ok() ? *std::move(outcome) : Outcome();
  }

  static void ExpectFiguresOfCpus(const Train& train) {
    const Outcome want = OutcomeOf(train, *On("cpu", GetParam()));
    const Outcome got = OnCuda(train);
    EXPECT_THAT(got.losses, Pointwise(FloatNear(kTolerance), want.losses));
    ASSERT_EQ(got.names, want.names);
    for (size_t i = 0; i < got.values.size(); ++i) {
      EXPECT_THAT(got.values[i],
                  Pointwise(FloatNear(kTolerance), want.values[i]))
          << got.names[i];
    }
  }
};

// The guide's 30 steps, with its linear unit as a model.
absl::StatusOr<Outcome> TrainAsTheGuide(Strategy& strategy) {
  const int64_t global = 5 * strategy.num_replicas_in_sync();
  ASSIGN_OR_RETURN(
      const Dataset data,
      Dataset::FromTensors({Tensor::Of({1}, {1, 1}), Tensor::Of({1}, {1, 1})}));
  ASSIGN_OR_RETURN(
      const Model model,
      Model::Create("linear", "input_shape: 1 layer { dense { units: 1 } }"));
  RETURN_IF_ERROR(
      model.variables()[0].Assign(Tensor::Of({-0.21567887f}, {1, 1})));
  ASSIGN_OR_RETURN(
      const Optimizer sgd,
      Optimizer::Create("sgd", "sgd {}", model.trainable_variables()));
  auto batches =
      strategy.DistributeDataset(data.Repeat().Batched(global)).begin();
  Outcome outcome;
  for (int i = 0; i < 30; ++i) {
    const PerReplica<Tensor> losses = strategy.Run(
        [&](ReplicaContext&, const Batch& batch) -> absl::StatusOr<Tensor> {
          GradientTape tape;
          const Tensor logits = model.Call(batch[0], {.training = true});
          const Tensor loss =
              ComputeAverageLoss(BinaryCrossentropy(batch[1], logits), global);
          RETURN_IF_ERROR(sgd.Minimize(loss, tape));
          return loss;
        },
        batches.Next());
    RETURN_IF_ERROR(losses.status());
    outcome.losses.push_back(strategy.Reduce(kSum, losses).scalar());
  }
  return outcome;
}

TEST_P(CudaDevicesTest, GuidesLossesAreTensorFlows) {
  const Outcome outcome = OnCuda(TrainAsTheGuide);
  ASSERT_EQ(outcome.losses.size(), 30);
  double logit = -.21567887;
  for (const float loss : outcome.losses) {
    EXPECT_NEAR(loss, std::log1p(std::exp(-logit)), 1e-6);
    logit += .02 / (1 + std::exp(logit));
  }
  EXPECT_NEAR(outcome.losses[29], .6519975, 1e-6);
}

// A classifier of examples, whose last batch leaves a replica without any.
absl::StatusOr<Outcome> TrainClassifier(Strategy& strategy,
                                        const std::string& layers,
                                        const Tensor& examples) {
  ASSIGN_OR_RETURN(const Model model, Model::Create("net", layers));
  ASSIGN_OR_RETURN(const Optimizer adam,
                   Optimizer::Create("adam", "adam { learning_rate: .01 }",
                                     model.trainable_variables()));
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < examples.shape()[0]; ++i) labels.push_back(i % 3);
  ASSIGN_OR_RETURN(
      const Dataset data,
      Dataset::FromTensors(
          {examples, Tensor::Ints(labels, {examples.shape()[0]})}));
  Outcome outcome;
  for (const auto& batch :
       strategy.DistributeDataset(data.Repeat(2).Batched(6))) {
    const PerReplica<Tensor> losses = strategy.Run(
        [&](ReplicaContext&, const Batch& piece) -> absl::StatusOr<Tensor> {
          GradientTape tape;
          const Tensor loss = ComputeAverageLoss(
              SparseCategoricalCrossentropy(
                  piece[1], model.Call(piece[0], {.training = true})),
              6);
          RETURN_IF_ERROR(adam.Minimize(loss, tape));
          return loss;
        },
        batch);
    RETURN_IF_ERROR(losses.status());
    outcome.losses.push_back(strategy.Reduce(kSum, losses).scalar());
  }
  outcome.AddValues(model.variables());
  const Tensor evaluated = model.Call(examples);
  RETURN_IF_ERROR(evaluated.status());
  outcome.names.push_back("evaluation");
  outcome.values.emplace_back(evaluated.values().begin(),
                              evaluated.values().end());
  return outcome;
}

// Moving moments, and what dropout draws.
TEST_P(CudaDevicesTest, ImagesAreLearntAsOnCpus) {
  ExpectFiguresOfCpus([](Strategy& strategy) {
    return TrainClassifier(
        strategy,
        "input_shape: [5, 5, 2]"
        "layer { conv2d { filters: 4 kernel_size: 3 use_bias: false } }"
        "layer { batch_normalization {} } layer { activation: RELU }"
        "layer { max_pool {} } layer { flatten {} }"
        "layer { dropout { rate: .25 } } layer { dense { units: 3 } }",
        Waves({13, 5, 5, 2}));
  });
}

TEST_P(CudaDevicesTest, SequencesAreLearntAsOnCpus) {
  ExpectFiguresOfCpus([](Strategy& strategy) {
    return TrainClassifier(
        strategy,
        "input_shape: [4, 6] layer { lstm { units: 6 return_sequences: true } }"
        "layer { name: 'a' multi_head_attention { num_heads: 2 key_dim: 3 "
        "causal: true } } layer { layer_normalization {} }"
        "layer { flatten {} } layer { dense { units: 3 } }",
        Waves({12, 4, 6}));
  });
}

// A table's rows, by ids that some examples share, and dense inputs.
absl::StatusOr<Outcome> TrainRecommender(Strategy& strategy) {
  ASSIGN_OR_RETURN(
      const Model model,
      Model::Create(
          "r",
          "input { name: 'x' dense { shape: 3 } } input { name: 'i' ids {} }"
          "sparse_table { name: 'rows' width: 4 }"
          "layer { name: 'd' dense { units: 4 activation: TANH } input: 'x' }"
          "layer { name: 'e' embedding_bag { table: 'rows' combiner: MEAN } "
          "input: 'i' } layer { concatenate {} input: ['d', 'e'] }"
          "layer { dense { units: 1 kernel_l2: .01 } }",
          {.table_rows = {{"rows", 20}}}));
  ASSIGN_OR_RETURN(const Optimizer sgd,
                   Optimizer::Create("sgd", "sgd { learning_rate: .5 }",
                                     model.trainable_variables()));
  std::vector<int64_t> ids;
  for (int i = 0; i < 24; ++i) ids.push_back(i * i % 20);
  ASSIGN_OR_RETURN(
      const Dataset data,
      Dataset::FromTensors(
          {Waves({8, 3}), Tensor::Ints(ids, {8, 3}), Waves({8, 1})}));
  Outcome outcome;
  for (const auto& batch :
       strategy.DistributeDataset(data.Repeat(5).Batched(8))) {
    const PerReplica<Tensor> losses = strategy.Run(
        [&](ReplicaContext& replica,
            const Batch& piece) -> absl::StatusOr<Tensor> {
          GradientTape tape;
          const Tensor error =
              model.Call({piece[0], piece[1]}, {.training = true}) - piece[2];
          const Tensor loss =
              ComputeAverageLoss(Square(error), 8) +
              model.RegularizationLoss() /
                  static_cast<float>(replica.num_replicas_in_sync());
          RETURN_IF_ERROR(sgd.Minimize(loss, tape));
          return loss;
        },
        batch);
    RETURN_IF_ERROR(losses.status());
    outcome.losses.push_back(strategy.Reduce(kSum, losses).scalar());
  }
  outcome.AddValues(model.variables());
  return outcome;
}

TEST_P(CudaDevicesTest, TablesAreLearntAsOnCpus) {
  ExpectFiguresOfCpus(TrainRecommender);
}

// Two models, one of which is called three times in a step, with gradients
// through it.
absl::StatusOr<Outcome> TrainGan(Strategy& strategy) {
  ASSIGN_OR_RETURN(
      const Model generator,
      Model::Create("g",
                    "input_shape: 3 layer { dense { units: 32 activation: "
                    "LEAKY_RELU } } layer { reshape { shape: [4, 4, 2] } }"
                    "layer { conv2d_transpose { filters: 1 kernel_size: 4 "
                    "stride: 2 padding: SAME activation: SIGMOID } }"));
  ASSIGN_OR_RETURN(
      const Model discriminator,
      Model::Create("d",
                    "input_shape: [8, 8, 1] layer { conv2d { filters: 3 "
                    "kernel_size: 3 stride: 2 activation: LEAKY_RELU } }"
                    "layer { flatten {} } layer { dense { units: 1 } }",
                    {.seed = 1}));
  ASSIGN_OR_RETURN(const Optimizer g_adam,
                   Optimizer::Create("g_adam", "adam { learning_rate: .002 }",
                                     generator.trainable_variables()));
  ASSIGN_OR_RETURN(const Optimizer d_adam,
                   Optimizer::Create("d_adam", "adam { learning_rate: .002 }",
                                     discriminator.trainable_variables()));
  const Tensor real = Waves({4, 8, 8, 1});
  const Tensor noise = Waves({4, 3});
  const auto score = [&](const Tensor& images) {
    return discriminator.Call(images, {.training = true});
  };
  Outcome outcome;
  for (int i = 0; i < 4; ++i) {
    const PerReplica<Tensor> losses =
        strategy.Run([&](ReplicaContext&) -> absl::StatusOr<Tensor> {
          GradientTape g_tape, d_tape;
          const Tensor fake = generator.Call(noise, {.training = true});
          const Tensor d_loss =
              ComputeAverageLoss(Softplus(score(StopGradient(fake))), 8) +
              ComputeAverageLoss(Softplus(-score(real)), 8);
          RETURN_IF_ERROR(d_adam.Minimize(d_loss, d_tape));
          const Tensor g_loss = ComputeAverageLoss(Softplus(-score(fake)), 8);
          RETURN_IF_ERROR(g_adam.Minimize(g_loss, g_tape));
          return d_loss + g_loss;
        });
    RETURN_IF_ERROR(losses.status());
    outcome.losses.push_back(strategy.Reduce(kSum, losses).scalar());
  }
  outcome.AddValues(generator.variables());
  outcome.AddValues(discriminator.variables());
  return outcome;
}

TEST_P(CudaDevicesTest, ModelsLearnAgainstEachOtherAsOnCpus) {
  ExpectFiguresOfCpus(TrainGan);
}

TEST_P(CudaDevicesTest, ErrorsNameModelAndDevice) {
  const auto strategy = On("cuda", GetParam());
  const Strategy::Scope scope(*strategy);
  ASSERT_OK_AND_ASSIGN(
      const Model model,
      Model::Create("net", "input_shape: 4 layer { dense { units: 2 } }"));
  EXPECT_THAT(model.Call(Zeros({5, 3})).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("model \"net\" on cuda:0 ("),
                             HasSubstr("input \"input\" is [5, 3]"))));
  EXPECT_THAT(ListDevices(), Contains("cuda:0"));
  EXPECT_THAT(Strategy::Mirrored({"cuda:0", "GPU:0"}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("device GPU:0 appears twice")));
  EXPECT_THAT(Strategy::OneDevice("cuda:77", {}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("device \"cuda:77\": ")));
}

INSTANTIATE_TEST_SUITE_P(Cuda, CudaDevicesTest, ::testing::Values(1, 2),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace parasol::loop
