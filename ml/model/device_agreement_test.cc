// A model trains alike on every device.

#include <algorithm>
#include <cmath>
#include <cstddef>
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
#include "ml/device/testing/bfloat16.h"
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
  // It has learned something: they do not agree by standing still.
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

// In bfloat16 what lies between layers of images is bfloat16.

// A residual block. With `filters` of 64 and 32 examples cuDNN computes the
// convolutions between its images.
std::string Residual(int filters) {
  const std::string conv = "conv2d { kernel_size: 3 padding: SAME filters: " +
                           std::to_string(filters);
  return R"(
    input_shape: [8, 8, 3]
    layer { name: "stem" )" +
         conv + R"( activation: RELU } }
    layer { name: "1" )" +
         conv + R"( use_bias: false } }
    layer { batch_normalization { momentum: 0.8 } }
    layer { activation: RELU }
    layer { name: "2" )" +
         conv + R"( use_bias: false } }
    layer { name: "norm" batch_normalization { momentum: 0.8 } }
    layer { input: ["norm", "stem"] add {} }
    layer { activation: RELU }
    layer { max_pool { pool_size: 3 stride: 2 padding: SAME } }
    layer { global_average_pool {} }
    layer { dense { units: 3 } }
  )";
}

// Images of noise, in which the class's color is brighter.
Batch ImagesOf(int64_t size, uint32_t seed) {
  Batch batch = {.size = size, .dense = {{.shape = {8, 8, 3}}}};
  const std::vector<double> noise = RandomMatrix(size, 192, seed).values;
  for (int64_t i = 0; i < size; ++i) {
    const int64_t label = (seed + i) % 3;
    batch.labels.push_back(label);
    for (int64_t j = 0; j < 192; ++j) {
      const double brighter = j % 3 == label ? .4 : 0;
      batch.dense[0].values.push_back(noise[i * 192 + j] + brighter);
    }
  }
  return batch;
}

double Norm(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += double{value} * value;
  return std::sqrt(sum);
}

class Bfloat16ModelTest : public ModelTestBase {
 protected:
  static Values InitialValues(const Model& model) {
    Values values = RandomValues(model);
    for (size_t i = 0; i < values.size(); ++i) {
      const VariableSpec& variable = model.variables()[i];
      // As He et al. 2015 begin.
      const double fans =
          variable.shape.size() < 2
              ? 1
              : double(variable.elements()) / variable.shape.back();
      for (float& value : values[i]) {
        value = variable.trained ? value * std::sqrt(6 / fans) : 1;
      }
      if (variable.name.ends_with("gamma")) {
        std::fill(values[i].begin(), values[i].end(), 1.0f);
      }
    }
    return values;
  }

  // Trains by gradient descent. Returns how many of 60 other images are right.
  static int64_t Learn(Model& model) {
    constexpr float kRate = .1f;
    Values values = InitialValues(model);
    for (int step = 0; step < 40; ++step) {
      SetAll(model, values);
      const Values gradients = GradientsOf(model, ImagesOf(16, step));
      for (size_t i = 0; i < values.size(); ++i) {
        const float rate = model.variables()[i].trained ? kRate : 1;
        for (size_t j = 0; j < values[i].size(); ++j) {
          values[i][j] -= rate * gradients[i][j];
        }
      }
    }
    SetAll(model, values);
    const absl::StatusOr<Evaluated> evaluated =
        Evaluate(model, ImagesOf(60, 1000));
    EXPECT_OK(evaluated);
    return evaluated->correct;
  }

  // Where an element is nearer to the edge of a relu, or to the largest one of
  // its window, than a rounding moves it, its gradient goes another way. That
  // happens to a share of about 2^-8 of the elements for each of the block's
  // four such layers, and norms of sums of independent errors grow like square
  // roots. What roundings themselves change is less.
  void ExpectGradientsOfTheCpu(const std::string& layers, int64_t examples) {
    const std::unique_ptr<Device> cpu = *Device::Open("cpu");
    ASSERT_OK_AND_ASSIGN(
        const std::unique_ptr<Model> on_cpu,
        Model::Create(ResolveGraph(Classifier(layers)).value(), *cpu));
    const std::unique_ptr<Model> model = Make(layers);
    const Values values = InitialValues(*model);
    SetAll(*on_cpu, values);
    SetAll(*model, values);
    const Batch batch = RandomBatch(examples, {8, 8, 3}, 3);
    const Values want = GradientsOf(*on_cpu, batch);
    const Values got = GradientsOf(*model, batch);
    for (size_t i = 0; i < want.size(); ++i) {
      SCOPED_TRACE(model->variables()[i].name);
      std::vector<float> difference = got[i];
      for (size_t j = 0; j < difference.size(); ++j) {
        difference[j] -= want[i][j];
      }
      EXPECT_LE(Norm(difference),
                std::sqrt(4 * kBfloat16Rounding) * Norm(want[i]) + 1e-6);
      // It is not computed in float32.
      EXPECT_GT(Norm(difference), 0);
    }
  }
};

TEST_P(Bfloat16ModelTest, GradientsOfAResidualBlockAreTheCpus) {
  ExpectGradientsOfTheCpu(Residual(8), 8);
}

TEST_P(Bfloat16ModelTest, GradientsByCudnnAreTheCpus) {
  ExpectGradientsOfTheCpu(Residual(64), 32);
}

// A wrong gradient or a scale that bfloat16 cannot hold would show.
TEST_P(Bfloat16ModelTest, LearnsAsWellAsOnTheCpu) {
  const std::string layers = Residual(8);
  const std::unique_ptr<Device> cpu = *Device::Open("cpu");
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<Model> on_cpu,
      Model::Create(ResolveGraph(Classifier(layers)).value(), *cpu));
  const int64_t want = Learn(*on_cpu);
  EXPECT_GE(want, 57);
  EXPECT_GE(Learn(*Make(layers)), want - 1);
}

INSTANTIATE_TEST_SUITE_P(Devices, Bfloat16ModelTest,
                         ::testing::Values(kCudaBfloat16), DeviceName);

}  // namespace
}  // namespace parasol
