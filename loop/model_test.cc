#include "loop/model.h"

#include <cmath>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "loop/optimizer.h"
#include "loop/strategy.h"
#include "ml/initializer/initializer.h"
#include "ml/initializer/row_initializer.h"
#include "ml/tape/operations.h"
#include "ml/tape/tape.h"
#include "proto/job.pb.h"

namespace parasol::loop {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pointwise;
using ::testing::SizeIs;

constexpr char kClassifier[] =
    "input_shape: 4 layer { dense { units: 6 activation: RELU } }"
    "layer { dense { units: 3 } }";
constexpr char kNormalized[] =
    "input_shape: 2 layer { batch_normalization { momentum: .75 } }";

std::unique_ptr<Strategy> On(int replicas, uint64_t seed = 0) {
  std::vector<std::string> devices;
  for (int i = 0; i < replicas; ++i) devices.push_back(absl::StrCat("cpu:", i));
  auto strategy = Strategy::Mirrored(devices, {.seed = seed});
  EXPECT_THAT(strategy.status(), IsOk());
  return *std::move(strategy);
}

Tensor Examples(int64_t examples, int64_t width) {
  std::vector<float> values;
  for (int64_t i = 0; i < examples * width; ++i) {
    values.push_back(std::sin(1.f + static_cast<float>(i)));
  }
  return Tensor::Of(values, {examples, width});
}

std::vector<std::string> NamesOf(const std::vector<Variable>& variables) {
  std::vector<std::string> names;
  for (const Variable& variable : variables) names.push_back(variable.name());
  return names;
}

TEST(ModelTest, VariablesHaveTheNamesAndInitialValuesOfJobs) {
  const auto strategy = On(1, /*seed=*/7);
  const Strategy::Scope scope(*strategy);
  ASSERT_OK_AND_ASSIGN(const Model model, Model::Create("net", kClassifier));
  EXPECT_THAT(NamesOf(model.variables()),
              ElementsAre("net/dense_0/kernel", "net/dense_0/bias",
                          "net/dense_1/kernel", "net/dense_1/bias"));
  EXPECT_THAT(NamesOf(model.trainable_variables()), NamesOf(model.variables()));
  job::Initializer glorot;
  glorot.mutable_glorot_uniform();
  std::vector<float> want(24);
  ASSERT_OK(
      Initialize(glorot, 7, "dense_0/kernel", {4, 6}, 0, absl::MakeSpan(want)));
  EXPECT_THAT(model.variables()[0].Read().values(), Pointwise(FloatEq(), want));
}

TEST(ModelTest, AModelOfASeedOfItsOwnBeginsDifferently) {
  const auto strategy = On(1);
  const Strategy::Scope scope(*strategy);
  ASSERT_OK_AND_ASSIGN(const Model one, Model::Create("one", kClassifier));
  ASSERT_OK_AND_ASSIGN(const Model same, Model::Create("same", kClassifier));
  ASSERT_OK_AND_ASSIGN(const Model other,
                       Model::Create("other", kClassifier, {.seed = 1}));
  const Tensor x = Examples(2, 4);
  const Tensor want = one.Call(x);
  ASSERT_OK(want.status());
  EXPECT_EQ(same.Call(x).values(), want.values());
  EXPECT_NE(other.Call(x).values(), want.values());
}

TEST(ModelTest, IsMadeFromLayersJobsFilesAndMessages) {
  const auto strategy = On(1);
  const Strategy::Scope scope(*strategy);
  const std::string job =
      absl::StrCat("name: 'j' model { ", kClassifier,
                   " loss { sparse_categorical_crossentropy {} } }");
  const std::string path = absl::StrCat(testing::TempDir(), "/model_test.job");
  std::ofstream(path) << job;
  job::Model message;
  ASSERT_TRUE(
      google::protobuf::TextFormat::ParseFromString(kClassifier, &message));
  ASSERT_OK_AND_ASSIGN(const Model of_layers, Model::Create("a", kClassifier));
  ASSERT_OK_AND_ASSIGN(const Model of_job, Model::Create("b", job));
  ASSERT_OK_AND_ASSIGN(const Model of_file, Model::FromJobFile("c", path));
  ASSERT_OK_AND_ASSIGN(const Model of_message, Model::Create("d", message));
  const Tensor x = Examples(3, 4);
  for (const Model& model : {of_job, of_file, of_message}) {
    EXPECT_EQ(model.Call(x).values(), of_layers.Call(x).values());
  }
  EXPECT_THAT(Model::FromJobFile("e", "/no/such/job").status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/no/such/job")));
}

TEST(ModelTest, WhatIsNoModelIsSaidInALine) {
  const auto strategy = On(1);
  const Strategy::Scope scope(*strategy);
  const auto fault = [](absl::string_view text, const ModelOptions& options) {
    return Model::Create("g", text, options).status();
  };
  EXPECT_THAT(fault("input_shape: 4\nlayer { denes { units: 3 } }", {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("model \"g\": line 2, column "),
                             HasSubstr("denes"))));
  EXPECT_THAT(fault("layer { denes {} }", {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("line 1, column 15 ")));
  EXPECT_THAT(fault("model {\n layer { dense { units: 3, n: 1 } } }", {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("model \"g\": line 2, column ")));
  EXPECT_THAT(fault("input_shape: 4 layer { dense { units: -1 } }", {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("model \"g\""), HasSubstr("dense_0"))));
  EXPECT_THAT(fault("", {}), StatusIs(absl::StatusCode::kInvalidArgument,
                                      HasSubstr("model \"g\"")));
  EXPECT_THAT(fault(kClassifier, {.table_rows = {{"ids", 3}}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("model \"g\""), HasSubstr("\"ids\""))));
  EXPECT_THAT(Model::Create("", kClassifier).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("without a name")));
  ASSERT_OK(Model::Create("g", kClassifier));
  EXPECT_THAT(
      Model::Create("g", kClassifier).status(),
      StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("model \"g\"")));
}

TEST(ModelTest, InputsThatDoNotFitAreTheOutputsStatus) {
  const auto strategy = On(1);
  const Strategy::Scope scope(*strategy);
  ASSERT_OK_AND_ASSIGN(const Model model, Model::Create("g", kClassifier));
  const Tensor x = Zeros({5, 3});
  EXPECT_THAT(model.Call(x).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("model \"g\": input \"input\" is"),
                             HasSubstr("[5, 3]"))));
  EXPECT_THAT(model.Call({x, x}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("model \"g\""), HasSubstr("2 inputs"),
                             HasSubstr("\"input\""))));
}

TEST(ModelTest, AStepOfAnotherStrategyIsRefused) {
  const auto other = On(1);
  const auto strategy = On(1);
  const Strategy::Scope scope(*strategy);
  ASSERT_OK_AND_ASSIGN(const Model model, Model::Create("g", kClassifier));
  EXPECT_THAT(
      other->Run([&](ReplicaContext&) {
             return model.Call(Zeros({1, 4}));
           })
          .status(),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               AllOf(HasSubstr("model \"g\""), HasSubstr("another strategy"))));
}

TEST(ModelTest, SeveralOutputsHaveNames) {
  const auto strategy = On(1);
  const Strategy::Scope scope(*strategy);
  ASSERT_OK_AND_ASSIGN(
      const Model model,
      Model::Create("m",
                    "input { name: 'x' dense { shape: 4 } }"
                    "input { name: 'y' dense { shape: 2 } }"
                    "layer { name: 'a' input: 'x' dense { units: 3 } }"
                    "layer { name: 'b' input: ['x', 'y'] concatenate {} }"
                    "output { name: 'left' layer: 'a' } output { name: 'b' }"));
  const Tensor x = Examples(5, 4);
  const Tensor y = Examples(5, 2);
  const ModelOutputs outputs = model.CallAll({x, y});
  EXPECT_THAT(outputs.tensors(), SizeIs(2));
  EXPECT_EQ(outputs["left"].shape(), (TensorShape{5, 3}));
  EXPECT_EQ(outputs["b"].shape(), (TensorShape{5, 6}));
  EXPECT_THAT(outputs["c"].status(),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("no output \"c\"; it has \"left\", \"b\"")));
  EXPECT_THAT(
      model.Call({x, y}).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("CallAll()")));
}

TEST(ModelTest, TablesHaveAllRowsInMemory) {
  const auto strategy = On(1, /*seed=*/3);
  const Strategy::Scope scope(*strategy);
  for (const std::string field :
       {"admission { min_count: 2 }", "eviction { max_rows: 10000 }",
        "tier { memory_bytes: 67108864 }", "values: BFLOAT16"}) {
    const std::string name = field.substr(0, field.find_first_of(" :"));
    EXPECT_THAT(
        Model::Create("m",
                      absl::StrCat("input { name: 'i' ids {} }"
                                   "sparse_table { name: 'rows' width: 2 ",
                                   field,
                                   " } layer { embedding_bag { table: "
                                   "'rows' } }"),
                      {.table_rows = {{"rows", 5}}})
            .status(),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 HasSubstr(absl::StrCat("table \"rows\" has ", name))));
  }
}

TEST(ModelTest, TablesAreVariablesWithTheRowsOfJobs) {
  constexpr char kEmbedding[] =
      "input { name: 'i' ids {} } sparse_table { name: 'rows' width: 2 }"
      "layer { embedding_bag { table: 'rows' } }";
  const auto strategy = On(1, /*seed=*/3);
  const Strategy::Scope scope(*strategy);
  EXPECT_THAT(Model::Create("e", kEmbedding).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("model \"e\": table \"rows\""),
                             HasSubstr("table_rows"))));
  ASSERT_OK_AND_ASSIGN(
      const Model model,
      Model::Create("t", kEmbedding, {.table_rows = {{"rows", 5}}}));
  ASSERT_THAT(NamesOf(model.trainable_variables()), ElementsAre("t/rows"));
  const Variable& table = model.variables()[0];
  EXPECT_EQ(table.shape(), (TensorShape{5, 2}));
  job::Initializer uniform;
  uniform.mutable_random_uniform()->set_minval(-.05);
  uniform.mutable_random_uniform()->set_maxval(.05);
  ASSERT_OK_AND_ASSIGN(const RowInitializer rows,
                       RowInitializer::Create(uniform, 3, "rows", 2));
  std::vector<float> want(2);
  rows.Fill(4, want.data());
  EXPECT_THAT(table.Read().values().subspan(8), ElementsAre(want[0], want[1]));

  GradientTape tape;
  const Tensor sum = ReduceSum(model.Call(Tensor::Ints({4, 4, 0, 1}, {2, 2})));
  const Tensor gradient = tape.Gradient(sum, table);
  ASSERT_OK(gradient.status());
  EXPECT_THAT(gradient.values(), ElementsAre(1, 1, 1, 1, 0, 0, 0, 0, 2, 2));
  EXPECT_THAT(model.Call(Tensor::Ints({5}, {1, 1})).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("model \"t\""), HasSubstr("id 5"))));
}

TEST(ModelTest, FrozenLayersAndMovingMomentsAreNotTrainable) {
  const auto strategy = On(1);
  const Strategy::Scope scope(*strategy);
  ASSERT_OK_AND_ASSIGN(
      const Model model,
      Model::Create("f",
                    "input_shape: 2 layer { trainable: false dense { units: 2 "
                    "} } layer { batch_normalization {} }"));
  EXPECT_THAT(NamesOf(model.trainable_variables()),
              ElementsAre("f/batch_normalization_1/gamma",
                          "f/batch_normalization_1/beta"));
  EXPECT_THAT(model.variables(), SizeIs(6));
}

TEST(ModelTest, RegularizationIsALossOfItsOwn) {
  const auto strategy = On(1);
  const Strategy::Scope scope(*strategy);
  ASSERT_OK_AND_ASSIGN(
      const Model model,
      Model::Create("r",
                    "input_shape: 2 layer { dense { units: 1 kernel_l2: .5 "
                    "kernel_initializer { constant { value: 3 } } } }"));
  GradientTape tape;
  const Tensor loss = model.RegularizationLoss();
  EXPECT_EQ(loss.scalar(), 9);
  const auto gradient = tape.Gradient(loss, Tensor(model.variables()[0]));
  EXPECT_THAT(gradient.values(), ElementsAre(3, 3));
}

// Draws of calls: each another one, but with the same seed the same.
TEST(ModelTest, CallsInTrainingDrawByStepReplicaAndCall) {
  const auto strategy = On(2);
  const Strategy::Scope scope(*strategy);
  ASSERT_OK_AND_ASSIGN(
      const Model model,
      Model::Create("d", "input_shape: 64 layer { dropout { rate: .5 } }"));
  const Tensor ones = Ones({1, 64});
  std::vector<Tensor> drawn;
  for (int step = 0; step < 2; ++step) {
    const auto result = strategy->Run([&](ReplicaContext&) {
      const Tensor first = model.Call(ones, {.training = true});
      return Concat({first, model.Call(ones, {.training = true})}, 0);
    });
    ASSERT_OK(result.status());
    for (const Tensor& of_replica : result.values()) {
      drawn.push_back(Slice(of_replica, {0, 0}, {1, 64}));
      drawn.push_back(Slice(of_replica, {1, 0}, {1, 64}));
    }
  }
  for (size_t i = 0; i < drawn.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      EXPECT_NE(drawn[i].values(), drawn[j].values()) << i << " " << j;
    }
  }
  const CallOptions seeded = {.training = true, .seed = 5};
  EXPECT_EQ(model.Call(ones, seeded).values(),
            model.Call(ones, seeded).values());
  EXPECT_EQ(model.Call(ones).values(), ones.values());
}

class ReplicatedModelTest : public ::testing::TestWithParam<int> {
 protected:
  ReplicatedModelTest() : strategy_(On(GetParam())), scope_(*strategy_) {}

  // Calls `step` on each replica with its piece of a batch.
  absl::Status RunOn(
      const Tensor& batch,
      const std::function<absl::Status(const Tensor& piece)>& step) {
    const Dataset data =
        Dataset::FromTensors({batch})->Batched(batch.shape()[0]);
    return strategy_->Run(
        [&](ReplicaContext&, const Batch& piece) { return step(piece[0]); },
        strategy_->DistributeDataset(data).begin().Next());
  }

  const std::unique_ptr<Strategy> strategy_;
  const Strategy::Scope scope_;
};

// The values after some steps of one replica, whatever the number of replicas:
// 7 examples leave the last of 4 replicas with one.
TEST_P(ReplicatedModelTest, LearnsAsOneReplicaDoes) {
  const auto train = [](Strategy& strategy) {
    const Strategy::Scope scope(strategy);
    const Model model = *Model::Create("net", kClassifier);
    const auto adam = *Optimizer::Create("adam", "adam { learning_rate: .1 }",
                                         model.trainable_variables());
    const Dataset data =
        Dataset::FromTensors(
            {Examples(7, 4), Tensor::Ints({0, 1, 2, 1, 0, 2, 2}, {7})})
            ->Repeat(20)
            .Batched(7);
    for (const auto& batch : strategy.DistributeDataset(data)) {
      EXPECT_OK(strategy.Run(
          [&](ReplicaContext&, const Batch& piece) {
            GradientTape tape;
            const Tensor losses = SparseCategoricalCrossentropy(
                piece[1], model.Call(piece[0], {.training = true}));
            return adam.Minimize(ComputeAverageLoss(losses, 7), tape);
          },
          batch));
    }
    return model.Call(Examples(7, 4));
  };
  const auto lone = On(1);
  Tensor want, got;
  std::thread([&] { want = train(*lone); }).join();
  std::thread([&] { got = train(*strategy_); }).join();
  ASSERT_OK(want.status());
  EXPECT_THAT(got.values(), Pointwise(FloatNear(1e-4), want.values()));
}

// The mean over the replicas, by their numbers of examples: 5 and 3 of two
// replicas, none of the last of four, would have other means unweighted.
TEST_P(ReplicatedModelTest, MovingMomentsHaveTheMeanOfTheReplicasChanges) {
  ASSERT_OK_AND_ASSIGN(const Model model, Model::Create("n", kNormalized));
  const Tensor x = Tensor::Of({1, 2, 3, 6, 5, 4, 9, 8, 2, 1}, {5, 2});
  ASSERT_OK(RunOn(x, [&](const Tensor& piece) {
    const Tensor before = model.variables()[2];
    const absl::Status called = model.Call(piece, {.training = true}).status();
    // In the step the change is the model's alone.
    EXPECT_EQ(Tensor(model.variables()[2]).values(), before.values());
    return called;
  }));
  const Tensor mean = ReduceMean(x, 0);
  EXPECT_THAT(model.variables()[2].Read().values(),
              ElementsAre(FloatNear(.25f * mean.values()[0], 1e-6),
                          FloatNear(.25f * mean.values()[1], 1e-6)));
}

// A second call of a step goes on from what the first one has left, as in
// Keras, and calls without training see it.
TEST_P(ReplicatedModelTest, CallsOfAStepFollowEachOther) {
  ASSERT_OK_AND_ASSIGN(const Model model, Model::Create("n", kNormalized));
  const Tensor x = Filled({4, 2}, 8);
  ASSERT_OK(RunOn(x, [&](const Tensor& piece) {
    model.Call(piece, {.training = true});
    model.Call(piece, {.training = true});
    const Tensor evaluated = model.Call(piece);
    // Mean 8 · (1 - .75²), variance .75².
    if (piece.shape()[0] > 0) {
      EXPECT_THAT(evaluated.values()[0],
                  FloatNear(4.5f / std::sqrt(.5625f + 1e-3f), 1e-4));
    }
    return evaluated.status();
  }));
  EXPECT_THAT(model.variables()[2].Read().values(), ElementsAre(3.5f, 3.5f));
}

TEST_P(ReplicatedModelTest, AStepThatFailsChangesNoMoments) {
  ASSERT_OK_AND_ASSIGN(const Model model, Model::Create("n", kNormalized));
  const Tensor x = Filled({4, 2}, 8);
  EXPECT_THAT(RunOn(x,
                    [&](const Tensor& piece) {
                      model.Call(piece, {.training = true});
                      return absl::OutOfRangeError("no");
                    }),
              Not(IsOk()));
  ASSERT_OK(RunOn(x, [&](const Tensor&) { return absl::OkStatus(); }));
  EXPECT_THAT(model.variables()[2].Read().values(), ElementsAre(0, 0));
}

INSTANTIATE_TEST_SUITE_P(Replicas, ReplicatedModelTest,
                         ::testing::Values(1, 2, 4));

}  // namespace
}  // namespace parasol::loop
