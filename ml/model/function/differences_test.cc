// Gradients of each kind of layer, as a function, agree with finite
// differences: by inputs, rows and variables, with and without training. On
// other devices outputs and gradients are the CPU's.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "gtest/gtest.h"
#include "ml/device/device.h"
#include "ml/layer/custom_layer.h"
#include "ml/layer/kinds/layer_kinds.h"
#include "ml/model/function/testing/function_fixture.h"

namespace parasol {
namespace {

using ::testing::FloatNear;
using ::testing::Pointwise;

constexpr int64_t kExamples = 3;
constexpr float kStep = .01f;
constexpr double kTolerance = 5e-3;

// y = factor · x, the factor a variable; knows nothing of functions.
class TimesPass final : public LayerPass {
 public:
  explicit TimesPass(int64_t size) : size_(size) {}

  absl::Status RunForward(const Forward& pass) override {
    const float* const x = pass.x[0];
    float* const y = pass.y;
    for (int64_t i = 0; i < size_; ++i) y[i] = *pass.variables[0] * x[i];
    return absl::OkStatus();
  }
  absl::Status RunVariableGradients(const Backward& pass) override {
    const float* const x = pass.x[0];
    const float* const dy = pass.dy;
    *pass.gradients[0] = 0;
    for (int64_t i = 0; i < size_; ++i) *pass.gradients[0] += dy[i] * x[i];
    return absl::OkStatus();
  }
  absl::Status RunInputGradients(const Backward& pass) override {
    const float* const dy = pass.dy;
    float* const dx = pass.dx[0];
    for (int64_t i = 0; i < size_ && dx != nullptr; ++i) {
      dx[i] = *pass.variables[0] * dy[i];
    }
    return absl::OkStatus();
  }

 private:
  const int64_t size_;
};

class Times final : public Layer {
 public:
  explicit Times(const Shape& shape) {
    output_shape_ = shape;
    variables_ = {{.name = "factor", .shape = {1}}};
  }
  absl::StatusOr<std::unique_ptr<LayerPass>> NewPass(
      Device&, int64_t examples) const override {
    return std::make_unique<TimesPass>(examples * ElementsOf(output_shape()));
  }
};

const CustomLayerRegistration kTimes(
    "times",
    [](const job::CustomLayer&, absl::Span<const LayerInput> inputs)
        -> absl::StatusOr<std::unique_ptr<const Layer>> {
      return std::make_unique<Times>(inputs[0].shape);
    });

struct Case {
  std::string model;
  std::vector<std::vector<int64_t>> inputs;
  int ids_per_example = 0;  // 0: there are no ids
};

// One for each kind of layer, by its name in a job file.
const std::map<std::string, Case>& Cases() {
  static const auto* const cases = new std::map<std::string, Case>{
      {"activation", {"input_shape: 5 layer { activation: TANH }", {{5}}}},
      {"add",
       {"input { name: 'a' dense { shape: 4 } } input { name: 'b' dense { "
        "shape: 4 } } layer { add {} input: ['a', 'b'] }",
        {{4}, {4}}}},
      {"average_pool",
       {"input_shape: [4, 4, 2] layer { average_pool {} }", {{4, 4, 2}}}},
      {"batch_normalization",
       {"input_shape: [3, 2] layer { batch_normalization {} }", {{3, 2}}}},
      {"concatenate",
       {"input { name: 'a' dense { shape: 4 } } input { name: 'b' dense { "
        "shape: 2 } } layer { concatenate {} input: ['a', 'b', 'a'] }",
        {{4}, {2}}}},
      {"conv2d",
       {"input_shape: [4, 4, 2] layer { conv2d { filters: 3 kernel_size: 3 "
        "activation: GELU } }",
        {{4, 4, 2}}}},
      {"conv1d",
       {"input_shape: [5, 2] layer { conv1d { filters: 3 kernel_size: 3 "
        "padding: CAUSAL activation: TANH } }",
        {{5, 2}}}},
      {"conv2d_transpose",
       {"input_shape: [3, 3, 2] layer { conv2d_transpose { filters: 3 "
        "kernel_size: 3 stride: 2 } }",
        {{3, 3, 2}}}},
      {"cross",
       {"input { name: 'a' dense { shape: 4 } } input { name: 'b' dense { "
        "shape: 4 } } layer { cross {} input: ['a', 'b'] }",
        {{4}, {4}}}},
      {"custom",
       {"input_shape: 4 layer { custom { type: 'times' output_shape: 4 "
        "variable { name: 'factor' shape: 1 } } }",
        {{4}}}},
      {"dense",
       {"input_shape: 4 layer { dense { units: 3 activation: SIGMOID } }",
        {{4}}}},
      {"depthwise_conv2d",
       {"input_shape: [4, 4, 2] layer { depthwise_conv2d { kernel_size: 3 "
        "depth_multiplier: 2 } }",
        {{4, 4, 2}}}},
      {"dot",
       {"input { name: 'a' dense { shape: 4 } } input { name: 'b' dense { "
        "shape: 4 } } layer { dot {} input: ['a', 'b'] }",
        {{4}, {4}}}},
      {"dot_interaction",
       {"input_shape: [3, 2] layer { dot_interaction {} }", {{3, 2}}}},
      {"dropout", {"input_shape: 8 layer { dropout { rate: .5 } }", {{8}}}},
      {"embedding",
       {"input { name: 'i' ids { column { name: 'c' } column { name: 'd' } } } "
        "sparse_table { name: 't' width: 3 } layer { embedding { table: 't' } "
        "}",
        {},
        2}},
      {"embedding_bag",
       {"input { name: 'i' ids {} } sparse_table { name: 't' width: 3 } layer "
        "{ embedding_bag { table: 't' combiner: MEAN } }",
        {},
        3}},
      {"factorization_machine",
       {"input_shape: [3, 2] layer { factorization_machine {} }", {{3, 2}}}},
      {"flatten",
       {"input_shape: [3, 2] layer { flatten {} } layer { dense { units: 2 } }",
        {{3, 2}}}},
      {"global_average_pool",
       {"input_shape: [4, 4, 2] layer { global_average_pool {} }",
        {{4, 4, 2}}}},
      {"global_average_pool1d",
       {"input_shape: [4, 3] layer { global_average_pool1d {} }", {{4, 3}}}},
      {"global_max_pool1d",
       {"input_shape: [4, 3] layer { global_max_pool1d {} }", {{4, 3}}}},
      {"group_normalization",
       {"input_shape: [3, 4] layer { group_normalization { groups: 2 } }",
        {{3, 4}}}},
      {"gru",
       {"input_shape: [4, 3] layer { gru { units: 2 return_sequences: true } }",
        {{4, 3}}}},
      {"layer_normalization",
       {"input_shape: 5 layer { layer_normalization {} }", {{5}}}},
      {"lstm",
       {"input_shape: [4, 3] layer { lstm { units: 2 bidirectional: CONCAT } }",
        {{4, 3}}}},
      {"max_pool",
       {"input_shape: [4, 4, 2] layer { max_pool {} }", {{4, 4, 2}}}},
      {"multi_head_attention",
       {"input_shape: [4, 6] layer { multi_head_attention { num_heads: 2 "
        "key_dim: 3 causal: true } }",
        {{4, 6}}}},
      {"multiply",
       {"input { name: 'a' dense { shape: 4 } } input { name: 'b' dense { "
        "shape: 4 } } layer { multiply {} input: ['a', 'b'] }",
        {{4}, {4}}}},
      {"pad",
       {"input_shape: [2, 2, 2] layer { pad { before: [1, 0, 0] after: [0, 2, "
        "0] } }",
        {{2, 2, 2}}}},
      {"positional_embedding",
       {"input_shape: [4, 3] layer { positional_embedding {} }", {{4, 3}}}},
      {"reshape",
       {"input_shape: 6 layer { reshape { shape: [3, 2] } } layer { "
        "batch_normalization { scale: false } }",
        {{6}}}},
      {"rms_normalization",
       {"input_shape: 5 layer { rms_normalization {} }", {{5}}}},
      {"separable_conv2d",
       {"input_shape: [4, 4, 2] layer { separable_conv2d { filters: 3 "
        "kernel_size: 3 } }",
        {{4, 4, 2}}}},
      {"weighted_sum",
       {"input { name: 'a' dense { shape: 2 } } input { name: 'b' dense { "
        "shape: [2, 3] } } layer { weighted_sum {} input: ['a', 'b'] }",
        {{2}, {2, 3}}}},
  };
  return *cases;
}

// Numbers that differ by more than two steps, and from 0 by more than one, in
// an order without a rule: no kink lies between the two points of a
// difference.
std::vector<float> Spread(int64_t size, uint32_t seed) {
  std::vector<float> values;
  for (int64_t i = 0; i < size; ++i) {
    values.push_back(.03f * static_cast<float>(i - size / 2) + .015f);
  }
  for (int64_t i = size - 1; i > 0; --i) {
    seed = seed * 1664525 + 1013904223;
    std::swap(values[i], values[(seed >> 8) % (i + 1)]);
  }
  return values;
}

// An element of a row, which has a number added.
struct Shift {
  uint64_t id = 0;
  size_t index = 0;
  float shift = 0;
};

class DifferencesTest : public FunctionTestBase {
 protected:
  static Batch BatchOf(const Case& c) {
    Batch batch = {.size = kExamples};
    for (const std::vector<int64_t>& shape : c.inputs) {
      batch.dense.push_back(
          {.shape = shape,
           .values = Spread(kExamples * ElementsOf(shape),
                            static_cast<uint32_t>(batch.dense.size()))});
    }
    if (c.ids_per_example == 0) return batch;
    IdFeature& ids = batch.ids.emplace_back();
    for (int64_t i = 0; i < kExamples * c.ids_per_example; ++i) {
      ids.ids.push_back(i * i % 5);
    }
    for (int64_t i = 0; i <= kExamples; ++i) {
      ids.offsets.push_back(static_cast<int32_t>(i * c.ids_per_example));
    }
    return batch;
  }

  // Σ r · y.
  static double Loss(ModelFunction& function, const Batch& batch,
                     const Values& values, bool training,
                     const std::vector<float>& r, const Shift& shift = {}) {
    const BatchViews inputs(batch);
    const absl::StatusOr<ModelFunction::Call> call = function.Forward(
        inputs.all(), ConstSpans(values), {.training = training, .seed = 3},
        [&shift](size_t table, absl::Span<const uint64_t> ids,
                 absl::Span<float> rows) {
          FillRows(table, ids, rows);
          const size_t width = rows.size() / ids.size();
          for (size_t i = 0; i < ids.size(); ++i) {
            if (ids[i] == shift.id)
              rows[i * width + shift.index] += shift.shift;
          }
          return absl::OkStatus();
        });
    EXPECT_OK(call);
    double sum = 0;
    for (size_t i = 0; i < r.size(); ++i) sum += r[i] * call->output(0)[i];
    return sum;
  }

  // Compares `gradient` with differences of `loss`, a function of the step.
  template <typename LossOf>
  static void ExpectNear(float gradient, const LossOf& loss,
                         const std::string& what) {
    const double want = (loss(kStep) - loss(-kStep)) / (2 * double{kStep});
    EXPECT_NEAR(gradient, want, kTolerance * (1 + std::abs(want))) << what;
  }

  template <typename LossOf>
  static void ExpectDifferences(const std::vector<float>& gradients,
                                std::vector<float>& point, const LossOf& loss,
                                const std::string& what) {
    ASSERT_EQ(gradients.size(), point.size()) << what;
    for (size_t i = 0; i < point.size(); ++i) {
      const float before = point[i];
      ExpectNear(
          gradients[i],
          [&](float step) {
            point[i] = before + step;
            return loss();
          },
          absl::StrCat(what, "[", i, "]"));
      point[i] = before;
    }
  }

  void Check(const Case& c, bool training) {
    const std::unique_ptr<ModelFunction> function = MakeFunction(c.model);
    Values values = ValuesFor(function->graph());
    Batch batch = BatchOf(c);
    const BatchViews inputs(batch);
    ASSERT_OK_AND_ASSIGN(const ModelFunction::Call call,
                         Forward(*function, inputs.all(), values,
                                 {.training = training, .seed = 3}));
    const std::vector<float> r =
        Spread(static_cast<int64_t>(call.output(0).size()), 9);
    Computed got = {.variables = WantTrained(function->graph()),
                    .inputs = WantInputs(batch)};
    ASSERT_OK(Backward(*function, call, {r}, got));
    const auto loss = [&] {
      return Loss(*function, batch, values, training, r);
    };
    for (size_t i = 0; i < batch.dense.size(); ++i) {
      ExpectDifferences(got.inputs[i], batch.dense[i].values, loss,
                        absl::StrCat("input ", i));
    }
    for (size_t i = 0; i < values.size(); ++i) {
      const VariableSpec& variable = function->graph().variables[i];
      if (!variable.trained) continue;
      ExpectDifferences(got.variables[i], values[i], loss, variable.name);
    }
    for (size_t table = 0; table < got.rows.size(); ++table) {
      const size_t width = got.rows[table].size() / got.ids[table].size();
      for (size_t i = 0; i < got.rows[table].size(); ++i) {
        ExpectNear(
            got.rows[table][i],
            [&](float step) {
              return Loss(*function, batch, values, training, r,
                          {.id = got.ids[table][i / width],
                           .index = i % width,
                           .shift = step});
            },
            absl::StrCat("row element ", i));
      }
    }
  }
};

TEST_P(DifferencesTest, EveryKindOfLayerHasACase) {
  for (const LayerKind* const kind : LayerKinds()) {
    const std::string& name =
        job::Layer::descriptor()->FindFieldByNumber(kind->field)->name();
    EXPECT_TRUE(Cases().contains(name)) << name;
  }
}

TEST_P(DifferencesTest, GradientsInTrainingAreThoseOfDifferences) {
  for (const auto& [name, c] : Cases()) {
    SCOPED_TRACE(name);
    Check(c, /*training=*/true);
  }
}

TEST_P(DifferencesTest, GradientsOfEvaluationAreThoseOfDifferences) {
  for (const auto& [name, c] : Cases()) {
    SCOPED_TRACE(name);
    Check(c, /*training=*/false);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, DifferencesTest, ::testing::Values("cpu"),
                         DeviceName);

class KindsOnDevicesTest : public DifferencesTest {
 protected:
  // Outputs, gradients and changes of a case.
  struct Results {
    std::vector<float> output;
    Computed gradients;
    Values changes = {};
  };

  static Results ResultsOf(const Case& c, bool training, Device& device) {
    const std::unique_ptr<ModelFunction> function =
        *ModelFunction::Create(*ResolveFunction(ParseModel(c.model)), device);
    const Values values = ValuesFor(function->graph());
    const Batch batch = BatchOf(c);
    const BatchViews inputs(batch);
    const absl::StatusOr<ModelFunction::Call> call = Forward(
        *function, inputs.all(), values, {.training = training, .seed = 3});
    EXPECT_OK(call);
    Results results = {
        .output = {call->output(0).begin(), call->output(0).end()},
        .gradients = {.variables = WantTrained(function->graph()),
                      .inputs = WantInputs(batch)}};
    EXPECT_OK(Backward(*function, *call,
                       {Spread(static_cast<int64_t>(results.output.size()), 9)},
                       results.gradients));
    for (size_t i = 0; i < values.size(); ++i) {
      results.changes.emplace_back(
          function->IsChangedByCalls(i) ? values[i].size() : 0);
    }
    if (training) {
      EXPECT_OK(function->ReadChanges(*call, Spans(results.changes)));
    }
    return results;
  }

  // Sums of a few products of numbers below 1, in other orders, or of numbers
  // of 8 bits.
  static void ExpectNear(const Values& got, const Values& want) {
    const float tolerance = GetParam() == kCudaBfloat16 ? .05f : 1e-4f;
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_THAT(got[i], Pointwise(FloatNear(tolerance), want[i])) << i;
    }
  }
};

TEST_P(KindsOnDevicesTest, EachKindOfLayerHasTheResultsOfTheCpu) {
  const std::unique_ptr<Device> cpu = *Device::Open("cpu");
  for (const auto& [name, c] : Cases()) {
    // Its code is the host's.
    if (name == "custom") continue;
    for (const bool training : {true, false}) {
      SCOPED_TRACE(absl::StrCat(name, training ? " in training" : ""));
      const Results got = ResultsOf(c, training, device());
      const Results want = ResultsOf(c, training, *cpu);
      ExpectNear({got.output}, {want.output});
      ExpectNear(got.gradients.variables, want.gradients.variables);
      ExpectNear(got.gradients.inputs, want.gradients.inputs);
      ExpectNear(got.gradients.rows, want.gradients.rows);
      ExpectNear(got.changes, want.changes);
      EXPECT_EQ(got.gradients.ids, want.gradients.ids);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, KindsOnDevicesTest,
                         ::testing::Values("cpu", kLazyCopies, "cuda:0",
                                           kCudaBfloat16),
                         DeviceName);

}  // namespace
}  // namespace parasol
