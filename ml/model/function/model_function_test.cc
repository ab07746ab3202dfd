#include "ml/model/function/model_function.h"

#include <cstdint>
#include <memory>
#include <numeric>
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
#include "ml/device/testing/lazy_copy_device.h"
#include "ml/loss/loss.h"
#include "ml/model/function/testing/function_fixture.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kSeed = 5;

const char kDense[] =
    "input_shape: 6 layer { name: 'a' dense { units: 5 activation: RELU } }"
    "layer { name: 'b' dense { units: 5 activation: GELU } }"
    "layer { dropout { rate: .4 } } layer { layer_normalization {} }"
    "layer { name: 'c' dense { units: 4 } }";
const char kResidual[] =
    "input_shape: [6, 6, 2]"
    "layer { name: 'a' conv2d { filters: 3 kernel_size: 3 padding: SAME } }"
    "layer { name: 'an' batch_normalization {} } layer { name: 'ar' activation:"
    " RELU }"
    "layer { name: 'b' conv2d { filters: 3 kernel_size: 3 padding: SAME } }"
    "layer { name: 'bn' batch_normalization {} }"
    "layer { name: 's' add {} input: ['bn', 'ar'] }"
    "layer { name: 'sr' activation: RELU } layer { max_pool {} }"
    "layer { flatten {} } layer { dropout { rate: .3 } }"
    "layer { name: 'c' dense { units: 4 } }";
const char kTables[] =
    "input { name: 'n' dense { shape: 3 } } input { name: 'i' ids {} }"
    "input { name: 'j' ids {} }"
    "sparse_table { name: 't' width: 4 } sparse_table { name: 'u' width: 2 }"
    "layer { name: 'd' dense { units: 4 activation: TANH } input: 'n' }"
    "layer { name: 'e' embedding_bag { table: 't' } input: 'i' }"
    "layer { name: 'f' embedding_bag { table: 't' combiner: MEAN } input: 'j' }"
    "layer { name: 'g' embedding_bag { table: 'u' use_bias: true } input: 'i' }"
    "layer { concatenate {} input: ['d', 'e', 'f', 'g'] }"
    "layer { dropout { rate: .5 } } layer { dense { units: 4 } }";

// `ids`: number of id inputs.
Batch BatchFor(int64_t size, const std::vector<int64_t>& shape, int ids = 0) {
  Batch batch = RandomBatch(size, shape, 4);
  for (int input = 0; input < ids; ++input) {
    IdFeature& feature = batch.ids.emplace_back();
    feature.offsets.push_back(0);
    for (int i = 0; i < size; ++i) {
      for (int j = 0; j < (i + input) % 4; ++j) {
        feature.ids.push_back((i * 7 + j * 3 + input) % 11);
      }
      feature.offsets.push_back(static_cast<int32_t>(feature.ids.size()));
    }
  }
  return batch;
}

class ModelFunctionTest : public FunctionTestBase {
 protected:
  // What Model computes of a batch in training with the seed kSeed.
  Computed OfModel(const job::Model& spec, const Batch& batch,
                   const Values& values) {
    const std::unique_ptr<Model> model = Make(spec);
    SetAll(*model, values);
    const std::unique_ptr<StagedBatch> staged = model->NewStagedBatch();
    EXPECT_OK(model->Stage(batch, *staged));
    for (const StagedBatch::Rows& rows : staged->rows()) {
      FillRows(rows.table, rows.ids, rows.values);
    }
    Computed computed;
    computed.variables.resize(values.size());
    EXPECT_OK(model->Gradients(
        *staged, kSeed,
        {.variable =
             [&](size_t index, absl::Span<const float> gradient) {
               computed.variables[index].assign(gradient.begin(),
                                                gradient.end());
               if (!model->variables()[index].trained) return;
               computed.written.push_back(index);
             },
         .rows =
             [&](size_t, absl::Span<const uint64_t> ids,
                 absl::Span<const float> gradients) {
               computed.ids.emplace_back(ids.begin(), ids.end());
               computed.rows.emplace_back(gradients.begin(), gradients.end());
             }}));
    return computed;
  }

  // Gradient of the batch's mean loss by the outputs.
  std::vector<float> LossGradient(const job::Model& spec, const Batch& batch,
                                  absl::Span<const float> outputs) {
    const Loss loss(ResolveGraph(spec)->outputs.front().loss);
    const auto blank = [this](size_t size) {
      return Put(std::vector<float>(size));
    };
    float* const gradient = blank(outputs.size());
    EXPECT_OK(loss.Compute(
        device(),
        {.outputs = Put(std::vector<float>(outputs.begin(), outputs.end())),
         .labels = Put(batch.labels),
         .examples = batch.size,
         .scratch = blank(loss.ScratchElements(batch.size))},
        blank(batch.size), gradient));
    return Get(gradient, static_cast<int64_t>(outputs.size()));
  }

  // Opens the device under test once more.
  static std::unique_ptr<Device> OpenAnother() {
    if (GetParam() == kLazyCopies) return std::make_unique<LazyCopyDevice>();
    return *Device::Open(GetParam());
  }

  void ExpectBitsOfModel(const std::string& layers, const Batch& batch) {
    const job::Model spec = Classifier(layers);
    const std::unique_ptr<ModelFunction> function = MakeFunction(spec);
    const Values values = ValuesFor(function->graph());
    const Computed want = OfModel(spec, batch, values);
    const BatchViews inputs(batch);
    ASSERT_OK_AND_ASSIGN(const ModelFunction::Call call,
                         Forward(*function, inputs.all(), values,
                                 {.training = true, .seed = kSeed}));
    Computed got = {.variables = WantTrained(function->graph()),
                    .inputs = WantInputs(batch)};
    ASSERT_OK(Backward(*function, call,
                       {LossGradient(spec, batch, call.output(0))}, got));
    Values changes;
    for (size_t i = 0; i < values.size(); ++i) {
      changes.emplace_back(function->IsChangedByCalls(i) ? values[i].size()
                                                         : 0);
    }
    ASSERT_OK(function->ReadChanges(call, Spans(changes)));
    for (size_t i = 0; i < values.size(); ++i) {
      const VariableSpec& variable = function->graph().variables[i];
      EXPECT_EQ(variable.trained ? got.variables[i] : changes[i],
                want.variables[i])
          << variable.name;
    }
    EXPECT_EQ(got.written, want.written);
    EXPECT_EQ(got.ids, want.ids);
    EXPECT_EQ(got.rows, want.rows);
  }
};

TEST_P(ModelFunctionTest, GradientsHaveTheBitsOfModel) {
  ExpectBitsOfModel(kDense, BatchFor(7, {6}));
  ExpectBitsOfModel(kResidual, BatchFor(5, {6, 6, 2}));
  ExpectBitsOfModel(kTables, BatchFor(9, {3}, 2));
}

TEST_P(ModelFunctionTest, OutputsWithoutTrainingHaveTheBitsOfEvaluation) {
  for (const char* const layers : {kDense, kResidual}) {
    const Batch batch =
        layers == kDense ? BatchFor(7, {6}) : BatchFor(7, {6, 6, 2});
    const std::unique_ptr<ModelFunction> function = MakeFunction(layers);
    const Values values = ValuesFor(function->graph());
    const std::unique_ptr<Model> model = Make(layers);
    SetAll(*model, values);
    ASSERT_OK_AND_ASSIGN(const Evaluated want, Evaluate(*model, batch));
    const BatchViews inputs(batch);
    ASSERT_OK_AND_ASSIGN(const ModelFunction::Call call,
                         Forward(*function, inputs.all(), values, {}));
    EXPECT_EQ(std::vector<float>(call.output(0).begin(), call.output(0).end()),
              want.outputs);
  }
}

TEST_P(ModelFunctionTest, CallsThatAreOpenAtOnceKeepTheirActivations) {
  const std::unique_ptr<ModelFunction> function = MakeFunction(kResidual);
  const Values values = ValuesFor(function->graph());
  const Batch batches[] = {BatchFor(5, {6, 6, 2}), BatchFor(3, {6, 6, 2}),
                           BatchFor(5, {6, 6, 2})};
  std::vector<std::unique_ptr<BatchViews>> views;
  std::vector<ModelFunction::Call> calls;
  Values gradients;
  for (size_t i = 0; i < 3; ++i) {
    views.push_back(std::make_unique<BatchViews>(batches[i]));
    ASSERT_OK_AND_ASSIGN(ModelFunction::Call call,
                         Forward(*function, views[i]->all(), values,
                                 {.training = true, .seed = i}));
    calls.push_back(std::move(call));
    gradients.push_back(std::vector<float>(calls[i].output(0).size(), .5f));
  }
  for (const size_t i : {1, 0, 2}) {
    Computed got = {.variables = WantTrained(function->graph()),
                    .inputs = WantInputs(batches[i])};
    ASSERT_OK(Backward(*function, calls[i], {gradients[i]}, got));
    const std::unique_ptr<ModelFunction> alone = MakeFunction(kResidual);
    ASSERT_OK_AND_ASSIGN(const ModelFunction::Call call,
                         Forward(*alone, views[i]->all(), values,
                                 {.training = true, .seed = i}));
    EXPECT_EQ(call.output(0), calls[i].output(0));
    Computed want = {.variables = WantTrained(function->graph()),
                     .inputs = WantInputs(batches[i])};
    ASSERT_OK(Backward(*alone, call, {gradients[i]}, want));
    EXPECT_EQ(got.variables, want.variables) << i;
    EXPECT_EQ(got.inputs, want.inputs) << i;
  }
}

TEST_P(ModelFunctionTest, ACallGivesGradientsAsOftenAsOneLikes) {
  for (const char* const layers : {kDense, kResidual}) {
    const Batch batch =
        layers == kDense ? BatchFor(7, {6}) : BatchFor(7, {6, 6, 2});
    const std::unique_ptr<ModelFunction> function = MakeFunction(layers);
    const Values values = ValuesFor(function->graph());
    const BatchViews inputs(batch);
    ASSERT_OK_AND_ASSIGN(
        const ModelFunction::Call call,
        Forward(*function, inputs.all(), values, {.training = true}));
    const auto gradients = [&](float by_output, bool variables, bool inputs) {
      Computed computed;
      if (variables) computed.variables = WantTrained(function->graph());
      if (inputs) computed.inputs = WantInputs(batch);
      EXPECT_OK(Backward(*function, call, {std::vector<float>(28, by_output)},
                         computed));
      return computed;
    };
    const Computed first = gradients(.5f, true, true);
    gradients(-3, true, true);
    const Computed again = gradients(.5f, true, true);
    EXPECT_EQ(again.variables, first.variables);
    EXPECT_EQ(again.inputs, first.inputs);
    // What is not wanted changes nothing of what is.
    const Computed variables = gradients(.5f, true, false);
    EXPECT_EQ(variables.variables, first.variables);
    EXPECT_THAT(variables.inputs, IsEmpty());
    const Computed of_inputs = gradients(.5f, false, true);
    EXPECT_EQ(of_inputs.inputs, first.inputs);
    EXPECT_THAT(of_inputs.written, IsEmpty());
  }
}

TEST_P(ModelFunctionTest, EachVariableCanBeTheOnlyOneThatIsWanted) {
  for (const char* const layers : {kResidual, kTables}) {
    const Batch batch =
        layers == kTables ? BatchFor(7, {3}, 2) : BatchFor(7, {6, 6, 2});
    const std::unique_ptr<ModelFunction> function = MakeFunction(layers);
    const Values values = ValuesFor(function->graph());
    const BatchViews inputs(batch);
    ASSERT_OK_AND_ASSIGN(
        const ModelFunction::Call call,
        Forward(*function, inputs.all(), values, {.training = true}));
    const Values by_outputs = {std::vector<float>(28, .25f)};
    Computed all = {.variables = WantTrained(function->graph())};
    ASSERT_OK(Backward(*function, call, by_outputs, all));
    for (size_t i = 0; i < values.size(); ++i) {
      if (!function->graph().variables[i].trained) continue;
      Computed one;
      one.variables.resize(values.size());
      one.variables[i].resize(values[i].size());
      ASSERT_OK(Backward(*function, call, by_outputs, one));
      EXPECT_EQ(one.variables[i], all.variables[i]) << i;
      EXPECT_THAT(one.written, ElementsAre(i));
    }
  }
}

// Two heads on one trunk.
const char kHeads[] =
    "input { name: 'x' dense { shape: 3 } } input { name: 'z' dense { shape: 2 "
    "} }"
    "layer { name: 't' dense { units: 4 activation: TANH } input: 'x' }"
    "layer { name: 'image' dense { units: 4 } input: 't' }"
    "layer { name: 'shaped' reshape { shape: [2, 2] } }"
    "layer { name: 'both' concatenate {} input: ['t', 'z'] }"
    "layer { name: 'score' dense { units: 1 } }"
    "output { name: 'shaped' } output { name: 'score' }"
    "output { name: 'trunk' layer: 't' }";

TEST_P(ModelFunctionTest, AnOutputWithoutAGradientIsLeftOut) {
  const std::unique_ptr<ModelFunction> function = MakeFunction(kHeads);
  ASSERT_EQ(function->num_outputs(), 3);
  EXPECT_THAT(function->output_shape(0), ElementsAre(2, 2));
  EXPECT_THAT(function->output_shape(1), ElementsAre(1));
  const Values values = ValuesFor(function->graph());
  Batch batch = BatchFor(5, {3});
  batch.dense.push_back(BatchFor(5, {2}).dense.front());
  const BatchViews inputs(batch);
  ASSERT_OK_AND_ASSIGN(
      const ModelFunction::Call call,
      Forward(*function, inputs.all(), values, {.training = true}));
  const Values by_outputs = {std::vector<float>(20, .5f),
                             std::vector<float>(5, -1.f),
                             std::vector<float>(20, .25f)};
  const auto gradients = [&](const std::vector<size_t>& outputs) {
    Computed computed = {.variables = WantTrained(function->graph()),
                         .inputs = WantInputs(batch)};
    Values given(3);
    for (const size_t i : outputs) given[i] = by_outputs[i];
    EXPECT_OK(Backward(*function, call, given, computed));
    return computed;
  };
  const Computed shaped = gradients({0});
  EXPECT_THAT(shaped.written, ElementsAre(2, 3, 0, 1));
  EXPECT_THAT(shaped.variables[4], Each(0.f));
  EXPECT_THAT(shaped.variables[5], Each(0.f));
  EXPECT_THAT(shaped.inputs[1], Each(0.f));
  const Computed score = gradients({1});
  EXPECT_THAT(score.written, ElementsAre(4, 5, 0, 1));
  EXPECT_THAT(score.variables[2], Each(0.f));
  EXPECT_THAT(gradients({2}).written, ElementsAre(0, 1));
  EXPECT_THAT(gradients({}).written, IsEmpty());
  EXPECT_THAT(gradients({}).inputs, Each(Each(0.f)));
  // Gradients are linear in the gradients by the outputs.
  const Computed trunk = gradients({2});
  const Computed all = gradients({0, 1, 2});
  for (const size_t i : {0, 1}) {
    for (size_t j = 0; j < all.variables[i].size(); ++j) {
      EXPECT_NEAR(all.variables[i][j],
                  shaped.variables[i][j] + score.variables[i][j] +
                      trunk.variables[i][j],
                  1e-5);
    }
  }
}

TEST_P(ModelFunctionTest, ChangesAreThereWithoutGradients) {
  const std::unique_ptr<ModelFunction> function = MakeFunction(
      "input_shape: 2 layer { batch_normalization { momentum: .75 } }");
  const Values values = {{1, 1}, {0, 0}, {8, 0}, {1, 1}};
  const Batch batch = {.size = 2,
                       .dense = {{.shape = {2}, .values = {1, 2, 3, 6}}}};
  const BatchViews inputs(batch);
  ASSERT_OK_AND_ASSIGN(
      const ModelFunction::Call call,
      Forward(*function, inputs.all(), values, {.training = true}));
  Values changes = {{}, {}, {0, 0}, {0, 0}};
  ASSERT_OK(function->ReadChanges(call, Spans(changes)));
  EXPECT_THAT(changes[2], ElementsAre(1.5f, -1.f));
  EXPECT_THAT(changes[3], ElementsAre(-.25f, -1.75f));
  ASSERT_OK_AND_ASSIGN(const ModelFunction::Call evaluation,
                       Forward(*function, inputs.all(), values, {}));
  EXPECT_THAT(function->ReadChanges(evaluation, Spans(changes)),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("without training")));
}

TEST_P(ModelFunctionTest, ThreadsHaveAFunctionEach) {
  const Batch batch = BatchFor(6, {6, 6, 2});
  const BatchViews inputs(batch);
  std::vector<Values> gradients(3);
  std::vector<std::thread> threads;
  for (Values& result : gradients) {
    threads.emplace_back([this, &inputs, &result] {
      const std::unique_ptr<Device> device = OpenAnother();
      const std::unique_ptr<ModelFunction> function = *ModelFunction::Create(
          *ResolveFunction(ParseModel(kResidual)), *device);
      const Values values = ValuesFor(function->graph());
      for (uint64_t seed = 1; seed <= 3; ++seed) {
        Computed computed = {.variables = WantTrained(function->graph())};
        const auto call = Forward(*function, inputs.all(), values,
                                  {.training = true, .seed = seed});
        EXPECT_OK(call);
        EXPECT_OK(Backward(*function, *call, {std::vector<float>(24, 1.f)},
                           computed));
        result = computed.variables;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(gradients[1], gradients[0]);
  EXPECT_EQ(gradients[2], gradients[0]);
}

TEST_P(ModelFunctionTest, WhatDoesNotFitIsSaid) {
  const std::unique_ptr<ModelFunction> function = MakeFunction(
      "input_shape: 2 layer { name: 'n' batch_normalization {} }"
      "layer { name: 'd' dense { units: 3 } }");
  const auto expect_fault = [](const absl::Status& status,
                               const std::string& fault) {
    EXPECT_THAT(status,
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(fault)));
  };
  Values values = ValuesFor(function->graph());
  const Batch batch = BatchFor(4, {2});
  const BatchViews good(batch);
  const Batch wide = BatchFor(4, {3});
  const BatchViews bad(wide);
  expect_fault(Forward(*function, bad.all(), values, {}).status(),
               "input \"input\": a batch of 4 examples has 12 features, not 8");
  expect_fault(Forward(*function, {}, values, {}).status(),
               "a batch of 0 examples");
  values.pop_back();
  expect_fault(Forward(*function, good.all(), values, {}).status(),
               "5 values of variables, the model has 6");
  values.push_back({1, 2});
  expect_fault(Forward(*function, good.all(), values, {}).status(),
               "variable \"d/bias\": 2 elements, not 3");
  values = ValuesFor(function->graph());
  ASSERT_OK_AND_ASSIGN(const ModelFunction::Call call,
                       Forward(*function, good.all(), values, {}));
  const Values by_output = {std::vector<float>(12)};
  const auto backward = [&](const Values& by_outputs, Values variables,
                            Values inputs) {
    Computed computed = {.variables = std::move(variables),
                         .inputs = std::move(inputs)};
    return Backward(*function, call, by_outputs, computed);
  };
  expect_fault(backward({}, {}, {}), "0 gradients by outputs, the model has 1");
  expect_fault(backward({{1, 2}}, {}, {}),
               "the gradient by output 0: 2 elements, not 12");
  expect_fault(backward(by_output, {{1}}, {}),
               "1 gradients by variables, the model has 6");
  expect_fault(backward(by_output, {{1}, {}, {}, {}, {}, {}}, {}),
               "variable \"n/gamma\": 1 elements, not 2");
  expect_fault(backward(by_output, {{}, {}, {1, 2}, {}, {}, {}}, {}),
               "variable \"n/moving_mean\" is not trained");
  expect_fault(backward(by_output, {}, {{}, {}}),
               "2 gradients by inputs, the model has 1");
  expect_fault(backward(by_output, {}, {{1}}),
               "input \"input\": 1 elements, not 8");
}

TEST_P(ModelFunctionTest, RowsThatAreNotThereAreSaid) {
  const std::unique_ptr<ModelFunction> function = MakeFunction(kTables);
  const Values values = ValuesFor(function->graph());
  const Batch batch = BatchFor(4, {3}, 2);
  const BatchViews inputs(batch);
  EXPECT_THAT(
      function->Forward(inputs.all(), ConstSpans(values), {}).status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("table \"t\""), HasSubstr("not given"))));
  EXPECT_THAT(
      function
          ->Forward(inputs.all(), ConstSpans(values), {},
                    [](size_t, absl::Span<const uint64_t>, absl::Span<float>) {
                      return absl::UnavailableError("ps/3 is gone");
                    })
          .status(),
      StatusIs(absl::StatusCode::kUnavailable,
               HasSubstr("table \"t\": ps/3 is gone")));
}

TEST_P(ModelFunctionTest, AModelNeedsALoss) {
  ASSERT_OK_AND_ASSIGN(Graph graph,
                       ResolveFunction(ParseModel(
                           "input_shape: 2 layer { dense { units: 1 } }")));
  EXPECT_THAT(
      Model::Create(std::move(graph), device()).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("has no loss")));
}

INSTANTIATE_TEST_SUITE_P(Devices, ModelFunctionTest, DevicesUnderTest(),
                         DeviceName);

}  // namespace
}  // namespace parasol
