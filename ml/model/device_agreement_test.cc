// A model trains alike on every device.

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/device/device.h"
#include "ml/device/testing/device_fixture.h"
#include "ml/kernel/testing/reference.h"
#include "ml/model/model.h"
#include "ml/model/testing/model_fixture.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pointwise;

// Every kind of layer.
constexpr char kLayers[] = R"(
  input { name: "image" dense { shape: [6, 6, 3] } }
  input { name: "ids" ids { column { name: "a" } column { name: "b" } } }
  sparse_table { name: "rows" width: 4 }
  layer { name: "pad" input: "image" pad { before: [1, 1, 0] after: [1, 0, 1] } }
  layer { name: "conv" conv2d { filters: 8 kernel_size: 3 padding: SAME stride: 2 kernel_l2: 0.001 } }
  layer { name: "norm" batch_normalization { momentum: 0.9 } }
  layer { name: "relu" activation: RELU }
  layer { name: "more" conv2d { filters: 8 kernel_size: 3 padding: SAME activation: GELU } }
  layer { name: "sum" input: ["relu", "more"] add {} }
  layer { name: "max" max_pool { pool_size: 2 } }
  layer { name: "mean" average_pool { pool_size: 2 stride: 1 padding: SAME } }
  layer { name: "flat" flatten {} }
  layer { name: "drop" dropout { rate: 0.2 } }
  layer { name: "layer_norm" layer_normalization {} }
  layer { name: "tanh" dense { units: 6 activation: TANH } }
  layer { name: "global" input: "sum" global_average_pool {} }
  layer { name: "lookup" input: "ids" embedding { table: "rows" l2: 0.001 } }
  layer { name: "pairs" factorization_machine {} }
  layer { name: "bag" input: "ids" embedding_bag { table: "rows" combiner: MEAN use_bias: true l2: 0.001 } }
  layer { name: "all" input: ["tanh", "global", "pairs", "bag"] concatenate {} }
  layer { name: "sigmoid" dense { units: 8 activation: SIGMOID } }
  layer { name: "logits" dense { units: 3 } }
  loss { sparse_categorical_crossentropy { label_smoothing: 0.1 } }
)";

Batch BatchOf(int64_t size, uint32_t seed) {
  Batch batch = {
      .size = size, .dense = {{.shape = {6, 6, 3}}}, .ids = {{.offsets = {0}}}};
  const std::vector<double> pixels = RandomMatrix(size, 108, seed).values;
  batch.dense[0].values.assign(pixels.begin(), pixels.end());
  for (int64_t i = 0; i < size; ++i) {
    batch.ids[0].ids.push_back((seed + 3 * i) % 11);
    batch.ids[0].ids.push_back(100 + (seed + i) % 7);
    batch.ids[0].offsets.push_back(2 * (i + 1));
    batch.labels.push_back((seed + i) % 3);
  }
  return batch;
}

struct Trained {
  Values values;
  std::map<uint64_t, std::vector<float>> rows;
  double loss_sum = 0;  // sum over all steps
};

// Trains by plain gradient descent, on batches of two sizes.
Trained Descend(Model& model, int steps) {
  constexpr float kRate = .05f;
  Trained trained;
  for (size_t i = 0; i < model.variables().size(); ++i) {
    const VariableSpec& variable = model.variables()[i];
    std::vector<float>& value = trained.values.emplace_back();
    for (double x : RandomMatrix(1, variable.elements(), i + 1).values) {
      value.push_back(variable.trained ? .3 * x : 1);
    }
  }
  const std::unique_ptr<StagedBatch> staged = model.NewStagedBatch();
  for (int step = 0; step < steps; ++step) {
    const Batch batch = BatchOf(step % 5 == 4 ? 3 : 8, step);
    for (size_t i = 0; i < trained.values.size(); ++i) {
      const absl::Span<float> host = model.HostValue(i);
      std::copy(trained.values[i].begin(), trained.values[i].end(),
                host.begin());
      EXPECT_OK(model.Upload(i));
    }
    EXPECT_OK(model.Stage(batch, *staged));
    for (const StagedBatch::Rows& rows : staged->rows()) {
      for (size_t i = 0; i < rows.ids.size(); ++i) {
        std::vector<float>& row = trained.rows[rows.ids[i]];
        if (row.empty()) row = {.1f, -.1f, .05f * (rows.ids[i] % 5), .2f};
        std::copy(row.begin(), row.end(), &rows.values[4 * i]);
      }
    }
    const auto result = model.Gradients(
        *staged, /*seed=*/step,
        {.variable =
             [&](size_t index, absl::Span<const float> gradient) {
               const bool trains = model.variables()[index].trained;
               for (size_t j = 0; j < gradient.size(); ++j) {
                 trained.values[index][j] -= (trains ? kRate : 1) * gradient[j];
               }
             },
         .rows =
             [&](size_t, absl::Span<const uint64_t> ids,
                 absl::Span<const float> gradients) {
               for (size_t j = 0; j < gradients.size(); ++j) {
                 trained.rows[ids[j / 4]][j % 4] -= kRate * gradients[j];
               }
             }});
    EXPECT_OK(result);
    trained.loss_sum += result->loss_sum;
  }
  return trained;
}

class DeviceAgreementTest : public ModelTestBase {};

// Devices add in different orders: each step differs by some float32 roundings
// (1e-7 of values below 1), which the steps behind it multiply by little, since
// they descend. A wrong kernel is off by a hundred times the tolerance.
TEST_P(DeviceAgreementTest, AHundredStepsEndWhereTheCpusDo) {
  constexpr int kSteps = 100;
  constexpr float kTolerance = 2e-4;
  const std::unique_ptr<Device> cpu = *Device::Open("cpu");
  ASSERT_OK_AND_ASSIGN(const auto on_cpu,
                       Model::Create(*ResolveGraph(ParseModel(kLayers)), *cpu));
  const Trained want = Descend(*on_cpu, kSteps);
  const Trained got = Descend(*Make(ParseModel(kLayers)), kSteps);

  for (size_t i = 0; i < want.values.size(); ++i) {
    SCOPED_TRACE(on_cpu->variables()[i].name);
    EXPECT_THAT(got.values[i],
                Pointwise(FloatNear(kTolerance), want.values[i]));
  }
  ASSERT_EQ(got.rows.size(), want.rows.size());
  for (const auto& [id, row] : want.rows) {
    SCOPED_TRACE(id);
    EXPECT_THAT(got.rows.at(id), Pointwise(FloatNear(kTolerance), row));
  }
  EXPECT_NEAR(got.loss_sum, want.loss_sum, kTolerance * want.loss_sum);
  // It has learned something: the agreement is not that of standing still.
  EXPECT_LT(Descend(*on_cpu, 2 * kSteps).loss_sum - want.loss_sum,
            want.loss_sum);
}

// Enough variables that a CUDA device copies them in several pieces.
constexpr char kWideLayers[] = R"(
  input_shape: [300]
  layer { dense { units: 300 activation: TANH kernel_l2: 0.001 } }
  layer { dense { units: 300 activation: TANH } }
  layer { dense { units: 300 activation: TANH kernel_l2: 0.001 } }
  layer { dense { units: 300 activation: TANH } }
  layer { dense { units: 3 } }
  loss { sparse_categorical_crossentropy {} }
)";

// A caller may upload some variables, or one twice: others keep their values.
TEST_P(DeviceAgreementTest, VariablesThatAreUploadedReachThePass) {
  const std::unique_ptr<Device> cpu = *Device::Open("cpu");
  ASSERT_OK_AND_ASSIGN(
      const auto on_cpu,
      Model::Create(*ResolveGraph(ParseModel(kWideLayers)), *cpu));
  const std::unique_ptr<Model> model = Make(ParseModel(kWideLayers));
  Values values = RandomValues(*model);
  // Small, lest tanh lets no gradient through.
  for (std::vector<float>& value : values) {
    for (float& element : value) element *= .1f;
  }
  SetAll(*on_cpu, values);
  SetAll(*model, values);
  const Batch batch = RandomBatch(4, {300}, 3);
  const auto set = [&](size_t index, float factor) {
    for (float& value : values[index]) value *= factor;
    Set(*on_cpu, index, values[index]);
    Set(*model, index, values[index]);
  };
  for (const std::vector<size_t>& uploaded :
       {std::vector<size_t>{}, {0}, {3, 9}, {1, 2, 4, 4, 5}, {8, 0, 8, 6}}) {
    for (const size_t index : uploaded) set(index, .9f);
    const Values want = GradientsOf(*on_cpu, batch);
    const Values got = GradientsOf(*model, batch);
    for (size_t i = 0; i < want.size(); ++i) {
      SCOPED_TRACE(model->variables()[i].name);
      EXPECT_THAT(got[i], Pointwise(FloatNear(1e-4), want[i]));
    }
  }
}

// The last layer first: what comes first leaves while the rest is computed.
TEST_P(DeviceAgreementTest, GradientsComeFromTheLastLayerToTheFirst) {
  const std::unique_ptr<Model> model = Make(ParseModel(kWideLayers));
  SetAll(*model, RandomValues(*model));
  std::vector<size_t> order;
  ASSERT_OK(Train(
      *model, RandomBatch(4, {300}, 3),
      [&](size_t index, absl::Span<const float>) { order.push_back(index); }));
  EXPECT_THAT(order, ElementsAre(8, 9, 6, 7, 4, 5, 2, 3, 0, 1));
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceAgreementTest, DevicesUnderTest(),
                         DeviceName);

}  // namespace
}  // namespace parasol
