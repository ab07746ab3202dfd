// A model whose steps are recorded and replayed trains as one whose steps are
// enqueued one by one.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/device/device.h"
#include "ml/device/testing/device_fixture.h"
#include "ml/input/feature/batch.h"
#include "ml/kernel/testing/reference.h"
#include "ml/layer/custom_layer.h"
#include "ml/layer/layer.h"
#include "ml/model/device_training.h"
#include "ml/model/model.h"
#include "ml/model/testing/recorded_model_fixture.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

using ::testing::ContainsRegex;

// y = x, by copies: so a RecordingDevice sees which input a pass reads.
class CopyPass : public LayerPass {
 public:
  CopyPass(Device& device, int64_t size) : device_(device), size_(size) {}

  absl::Status RunForward(const Forward& pass) override {
    return Copy(pass.x[0], pass.y);
  }
  absl::Status RunVariableGradients(const Backward&) override {
    return absl::OkStatus();
  }
  absl::Status RunInputGradients(const Backward& pass) override {
    return Copy(pass.dy, pass.dx[0]);
  }

 private:
  absl::Status Copy(const float* from, float* to) {
    return device_.Copy(Device::Stream::kCompute,
                        absl::MakeConstSpan(from, size_), to);
  }

  Device& device_;
  const int64_t size_;
};

class CopyLayer : public Layer {
 public:
  CopyLayer(const Shape& shape, bool is_recordable)
      : is_recordable_(is_recordable) {
    output_shape_ = shape;
  }

  bool IsRecordable() const override { return is_recordable_; }
  absl::StatusOr<std::unique_ptr<LayerPass>> NewPass(
      Device& device, int64_t examples) const override {
    return std::make_unique<CopyPass>(device,
                                      examples * ElementsOf(output_shape()));
  }

 private:
  const bool is_recordable_;
};

const CustomLayerRegistration kCopy(
    "copy",
    [](const job::CustomLayer& spec, absl::Span<const LayerInput> inputs)
        -> absl::StatusOr<std::unique_ptr<const Layer>> {
      return std::make_unique<CopyLayer>(
          inputs[0].shape, ParameterOf(spec, "recordable") == "yes");
    });

// Every kind of layer that may be recorded; convolutions with and without
// cuDNN; batch normalization, whose moving means must move once a step.
constexpr char kLayers[] = R"(
  input_shape: [6, 6, 3]
  layer { custom { type: "copy" output_shape: [6, 6, 3]
                   parameter { name: "recordable" value: "yes" } } }
  layer { name: "pad" pad { before: [1, 1, 0] after: [1, 0, 1] } }
  layer { conv2d { filters: 8 kernel_size: 3 padding: SAME stride: 2 kernel_l2: 0.001 } }
  layer { name: "norm" batch_normalization { momentum: 0.9 } }
  layer { name: "relu" activation: RELU }
  layer { name: "more" conv2d { filters: 8 kernel_size: 3 padding: SAME activation: GELU } }
  layer { name: "sum" input: ["relu", "more"] add {} }
  layer { max_pool { pool_size: 2 } }
  layer { average_pool { pool_size: 2 stride: 1 padding: SAME } }
  layer { flatten {} }
  layer { layer_normalization {} }
  layer { name: "tanh" dense { units: 6 activation: TANH } }
  layer { name: "global" input: "sum" global_average_pool {} }
  layer { input: ["tanh", "global"] concatenate {} }
  layer { dense { units: 8 activation: SIGMOID } }
  layer { dense { units: 3 } }
)";

Batch BatchOf(int64_t size, uint32_t seed) {
  Batch batch = {.size = size, .dense = {{.shape = {6, 6, 3}}}};
  const std::vector<double> pixels = RandomMatrix(size, 108, seed).values;
  batch.dense[0].values.assign(pixels.begin(), pixels.end());
  for (int64_t i = 0; i < size; ++i) batch.labels.push_back((seed + i) % 3);
  return batch;
}

class RecordedModelTest : public RecordedModelFixture {
 protected:
  // One on a batch of each size, by gradient descent, with two batches staged
  // in another rhythm than the gradients' two sides.
  static std::vector<Step> Descend(Model& model,
                                   const std::vector<int64_t>& sizes) {
    const std::array<std::unique_ptr<StagedBatch>, 2> staged = {
        model.NewStagedBatch(), model.NewStagedBatch()};
    Values values = InitialValues(model);
    std::vector<Step> steps;
    for (size_t i = 0; i < sizes.size(); ++i) {
      steps.push_back(
          Run(model, BatchOf(sizes[i], i), *staged[i / 2 % 2], values));
      for (size_t j = 0; j < values.size(); ++j) {
        const float rate = model.variables()[j].trained ? .05f : 1;
        for (size_t k = 0; k < values[j].size(); ++k) {
          values[j][k] -= rate * steps.back().gradients[j][k];
        }
      }
    }
    return steps;
  }
};

TEST_P(RecordedModelTest, AHundredStepsAreThoseEnqueuedOneByOne) {
  const std::unique_ptr<Model> model = Make(kLayers);
  std::vector<int64_t> sizes;
  for (int i = 0; i < 100; ++i) sizes.push_back(i % 5 == 4 ? 3 : 8);
  const std::vector<Step> steps = Descend(*model, sizes);
  ExpectReplayed(/*at_least=*/80);
  ExpectPlain(kLayers, steps);
}

TEST_P(RecordedModelTest, ALargerBatchMovesMemoryAndThatIsNoticed) {
  const std::unique_ptr<Model> model = Make(kLayers);
  std::vector<int64_t> sizes(20, 8);
  sizes.insert(sizes.end(), 20, 33);
  sizes.insert(sizes.end(), 20, 8);
  const std::vector<Step> steps = Descend(*model, sizes);
  ExpectReplayed(/*at_least=*/30);
  ExpectPlain(kLayers, steps);
}

TEST_P(RecordedModelTest, LayersThatWereThrownAwayAreNotReplayed) {
  const std::unique_ptr<Model> model = Make(kLayers);
  std::vector<int64_t> sizes(12, 8);
  sizes.insert(sizes.end(), {1, 2, 3, 4, 5});
  sizes.insert(sizes.end(), 12, 8);
  const std::vector<Step> steps = Descend(*model, sizes);
  ExpectReplayed(/*at_least=*/10);
  // Two batches by two sides, before and after.
  if (fake() != nullptr) {
    EXPECT_EQ(fake()->recorded(), 8);
  }
  ExpectPlain(kLayers, steps);
}

TEST_P(RecordedModelTest, AnEvaluationBetweenStepsIsNotRecorded) {
  const std::unique_ptr<Model> model = Make(kLayers);
  const std::unique_ptr<StagedBatch> staged = model->NewStagedBatch();
  const Values values = InitialValues(*model);
  std::vector<Step> steps;
  double loss_sum = 0;
  for (int i = 0; i < 20; ++i) {
    steps.push_back(Run(*model, BatchOf(8, i), *staged, values));
    if (i != 7 && i != 8) continue;
    ASSERT_OK_AND_ASSIGN(const Evaluated evaluated,
                         Evaluate(*model, BatchOf(70, 5)));
    if (loss_sum == 0) loss_sum = evaluated.loss_sum;
    EXPECT_EQ(evaluated.loss_sum, loss_sum);
  }
  ExpectReplayed(/*at_least=*/8);
  ExpectPlain(kLayers, steps);
}

TEST_P(RecordedModelTest, WeightsMayComeAndGo) {
  const std::unique_ptr<Model> model = Make(kLayers);
  const std::unique_ptr<StagedBatch> staged = model->NewStagedBatch();
  const Values values = InitialValues(*model);
  std::vector<Step> steps;
  for (int i = 0; i < 24; ++i) {
    Batch batch = BatchOf(4, i);
    if (i % 6 < 2) batch.weights = {.5f, 2, 0, 1};
    steps.push_back(Run(*model, batch, *staged, values));
  }
  ExpectReplayed(/*at_least=*/12);
  // For each side of the gradients one with weights and one without.
  if (fake() != nullptr) {
    EXPECT_EQ(fake()->recorded(), 4);
  }
  ExpectPlain(kLayers, steps);
}

TEST_P(RecordedModelTest, OneThatCannotBeRecordedComputesTheSame) {
  if (fake() == nullptr) GTEST_SKIP() << "a CUDA device records";
  fake()->RefuseToRecord();
  const std::unique_ptr<Model> model = Make(kLayers);
  const std::vector<Step> steps = Descend(*model, std::vector<int64_t>(10, 8));
  EXPECT_EQ(fake()->replayed(), 0);
  ExpectPlain(kLayers, steps);
}

TEST_P(RecordedModelTest, CodeThatDoesNotSayThatItMayBeIsNeverRecorded) {
  testing::internal::CaptureStderr();
  const std::unique_ptr<Model> model = Make(
      "input_shape: [6, 6, 3]"
      "layer { custom { type: 'copy' output_shape: [6, 6, 3] } name: 'mine' }"
      "layer { flatten {} } layer { dense { units: 3 } }");
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              ContainsRegex("steps are not recorded.*layer \"mine\""));
  const std::unique_ptr<StagedBatch> staged = model->NewStagedBatch();
  for (int i = 0; i < 8; ++i) {
    Run(*model, BatchOf(4, 1), *staged, InitialValues(*model));
  }
  if (fake() != nullptr) {
    EXPECT_EQ(fake()->recorded(), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, RecordedModelTest, RecordersUnderTest(),
                         DeviceName);
INSTANTIATE_TEST_SUITE_P(Bfloat16, RecordedModelTest,
                         ::testing::Values(kCudaGraphsBfloat16), DeviceName);

// Gradients that stay in the device's memory and are marked piece by piece.
constexpr char kDense[] = R"(
  input_shape: [8]
  layer { dense { units: 5 activation: TANH kernel_l2: 0.1 } }
  layer { dense { units: 4 activation: TANH kernel_l2: 0.2 } }
  layer { dense { units: 3 kernel_l2: 0.3 } }
)";

class WrittenPiecesTest : public RecordedModelFixture {
 protected:
  using Piece = DeviceTraining::Piece;

  // Writes values to the variables of a model whose variables stay on the
  // device.
  void Write(const std::vector<DeviceTraining::Variable>& variables,
             const Values& values) {
    for (size_t i = 0; i < values.size(); ++i) {
      Array<float> host = *device().NewHostArray<float>(values[i].size());
      std::copy(values[i].begin(), values[i].end(), host.data());
      ASSERT_OK(device().Copy(Device::Stream::kCompute,
                              absl::MakeConstSpan(host.data(), host.size()),
                              variables[i].value));
      ASSERT_OK(device().Synchronize());
    }
  }

  // Copies each piece beside the pass, as soon as it is marked.
  absl::Status Fetch(absl::Span<const Piece> pieces, const float* gradients,
                     float* to) {
    constexpr Device::Stream kBeside = Device::Stream::kCopyOut;
    for (const Piece& piece : pieces) {
      RETURN_IF_ERROR(device().Follow(*piece.written, kBeside));
      RETURN_IF_ERROR(device().Copy(
          kBeside, absl::MakeConstSpan(gradients + piece.first, piece.elements),
          to + piece.first));
    }
    return device().Order(kBeside, Device::Stream::kCompute);
  }
};

// The pieces cut a layer, and two of them end with the same one. Their L2 terms
// are part of the gradients. With graphs the first pass is plain, the second
// one is recorded and later ones are replayed.
TEST_P(WrittenPiecesTest, AMarkedPieceHasItsGradients) {
  const std::unique_ptr<Model> whole = Make(kDense), model = Make(kDense);
  DeviceTraining& training = *model->device_training();
  ASSERT_OK_AND_ASSIGN(const auto variables, training.Variables());
  ASSERT_OK_AND_ASSIGN(
      const std::vector<Piece> pieces,
      training.WriteInPieces({{5, 6}, {3, 5}, {1, 3}, {0, 1}}));
  const absl::Span<float> all = training.AllGradients();
  ASSERT_OK_AND_ASSIGN(const Array<float> got,
                       device().NewHostArray<float>(all.size()));
  const Batch batch = RandomBatch(6, {8}, 3);
  Values values = RandomValues(*model);
  const std::unique_ptr<StagedBatch> staged = model->NewStagedBatch();
  for (int step = 0; step < 5; ++step) {
    SCOPED_TRACE(step);
    for (std::vector<float>& value : values) {
      for (float& element : value) element *= .9f;
    }
    SetAll(*whole, values);
    const Values want = GradientsOf(*whole, batch);
    Write(variables, values);
    ASSERT_OK(model->Stage(batch, *staged));
    ASSERT_OK(training.Train(*staged, /*seed=*/1,
                             {.update =
                                  [&](absl::Span<const DeviceTraining::Rows>) {
                                    return Fetch(pieces, all.data(),
                                                 got.data());
                                  },
                              .rows = IgnoreRows}));
    ASSERT_OK(device().Synchronize());
    for (size_t i = 0; i < want.size(); ++i) {
      const float* const first =
          got.data() + (variables[i].gradient - all.data());
      EXPECT_EQ(std::vector<float>(first, first + want[i].size()), want[i])
          << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, WrittenPiecesTest, RecordersUnderTest(),
                         DeviceName);

}  // namespace
}  // namespace parasol
