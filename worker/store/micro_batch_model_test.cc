#include "worker/store/micro_batch_model.h"

#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/device/testing/device_fixture.h"
#include "ml/model/device_training.h"
#include "ml/model/testing/model_fixture.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pointwise;

job::Job JobWith(int batch, int micro_batch) {
  job::Job job;
  job.mutable_train()->set_batch_size(batch);
  job.mutable_train()->set_micro_batch_size(micro_batch);
  return job;
}

// Numbers and ids; l2 and batch normalization are added by `layers`.
job::Model Wide(const std::string& layers = "") {
  return Classifier(absl::StrCat(
      "input { name: 'x' dense { shape: 3 } }"
      "input { name: 'items' ids {} }"
      "sparse_table { name: 'factors' width: 2 }"
      "sparse_table { name: 'frozen' width: 3 trainable: false }"
      "layer { name: 'i' embedding_bag { table: 'factors' } input: 'items' }"
      "layer { name: 'f' embedding_bag { table: 'frozen' } input: 'items' }"
      "layer { name: 'c' concatenate {} input: ['i', 'x', 'f'] }",
      layers, "layer { name: 'd' dense { units: 2 kernel_l2: .5 } }"));
}

// Weighted examples of which several share ids.
Batch ItemsBatch(int64_t size) {
  Batch batch = RandomBatch(size, {3}, 2);
  IdFeature& items = batch.ids.emplace_back();
  items.offsets.push_back(0);
  for (int64_t i = 0; i < size; ++i) {
    for (int64_t j = 0; j < i % 3; ++j) {
      items.ids.push_back(7 + (i * j) % 4);
      items.weights.push_back(1 + .5f * j);
    }
    items.offsets.push_back(items.ids.size());
    batch.weights.push_back(1 + i % 2);
  }
  return batch;
}

class MicroBatchModelTest : public ModelTestBase {
 protected:
  struct Step {
    BatchResult result;
    Values variables;
    // By table and id.
    std::map<std::pair<size_t, uint64_t>, std::vector<float>> rows;
    int calls_of_rows = 0;
    std::vector<float> outputs;
  };

  std::unique_ptr<Model> MakeSplit(const job::Model& spec, int micro_batch) {
    return SplitBatches(Make(spec), device(), JobWith(1000, micro_batch));
  }

  static void FillRows(const StagedBatch& staged) {
    for (const StagedBatch::Rows& rows : staged.rows()) {
      const size_t width =
          rows.ids.empty() ? 0 : rows.values.size() / rows.ids.size();
      for (size_t i = 0; i < rows.values.size(); ++i) {
        rows.values[i] = .125f * (rows.ids[i / width] % 5) + .25f * (i % width);
      }
    }
  }

  static std::vector<uint32_t> BitsOf(const std::vector<float>& values) {
    std::vector<uint32_t> bits;
    for (const float value : values) {
      bits.push_back(std::bit_cast<uint32_t>(value));
    }
    return bits;
  }

  static void TakeRows(size_t table, absl::Span<const uint64_t> ids,
                       absl::Span<const float> gradients, Step& step) {
    ++step.calls_of_rows;
    for (size_t i = 0; i < ids.size(); ++i) {
      const size_t width = gradients.size() / ids.size();
      const auto row = gradients.subspan(i * width, width);
      EXPECT_TRUE(step.rows
                      .emplace(std::pair(table, ids[i]),
                               std::vector(row.begin(), row.end()))
                      .second)
          << "id " << ids[i] << " comes twice";
    }
  }

  absl::Status CopyPieces(absl::Span<const DeviceTraining::Piece> pieces,
                          const float* from, float* to) {
    constexpr Device::Stream kBeside = Device::Stream::kCopyIn;
    // What is late is done for the piece that is waited for, and no more.
    if (!pieces.empty()) {
      RETURN_IF_ERROR(device().Wait(*pieces.front().written));
    }
    for (const DeviceTraining::Piece& piece : pieces) {
      RETURN_IF_ERROR(device().Follow(*piece.written, kBeside));
      RETURN_IF_ERROR(device().Copy(
          kBeside, absl::MakeConstSpan(from + piece.first, piece.elements),
          to + piece.first));
    }
    return absl::OkStatus();
  }

  // Returns the step of Run(), without outputs, whose gradients of variables
  // stay in the memory of the device, and are copied beside the pass if they
  // are written in pieces.
  Step RunOnDevice(Model& model, const Batch& batch,
                   absl::Span<const DeviceTraining::Piece> pieces = {}) {
    DeviceTraining& training = *model.device_training();
    const std::vector<DeviceTraining::Variable> arrays = *training.Variables();
    const Values values = RandomValues(model);
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_OK(
          device().Copy(Device::Stream::kCompute,
                        absl::MakeConstSpan(Put(values[i]), values[i].size()),
                        arrays[i].value));
    }
    const std::unique_ptr<StagedBatch> staged = model.NewStagedBatch();
    EXPECT_OK(model.Stage(batch, *staged));
    FillRows(*staged);
    const absl::Span<float> all = training.AllGradients();
    Array<float> copied = *device().NewArray<float>(all.size());
    Step step;
    int updates = 0;
    const absl::StatusOr<BatchResult> result = training.Train(
        *staged, /*seed=*/1,
        {.update =
             [&](absl::Span<const DeviceTraining::Rows> on_device) {
               EXPECT_TRUE(on_device.empty());
               ++updates;
               return CopyPieces(pieces, all.data(), copied.data());
             },
         .rows =
             [&](size_t table, absl::Span<const uint64_t> ids,
                 absl::Span<const float> gradients) {
               TakeRows(table, ids, gradients, step);
             }});
    EXPECT_OK(result);
    EXPECT_EQ(updates, 1);
    EXPECT_OK(device().Synchronize());
    step.result = *result;
    for (size_t i = 0; i < values.size(); ++i) {
      const float* const from =
          pieces.empty() ? arrays[i].gradient
                         : copied.data() + (arrays[i].gradient - all.data());
      step.variables.push_back(Get(from, values[i].size()));
    }
    return step;
  }

  static Step Run(Model& model, const Batch& batch) {
    SetAll(model, RandomValues(model));
    Step step;
    step.variables.resize(model.variables().size());
    const std::unique_ptr<StagedBatch> staged = model.NewStagedBatch();
    EXPECT_OK(model.Stage(batch, *staged));
    FillRows(*staged);
    const auto take_variable = [&](size_t index, absl::Span<const float> g) {
      EXPECT_TRUE(step.variables[index].empty()) << "comes twice";
      step.variables[index].assign(g.begin(), g.end());
    };
    const auto take_rows = [&](size_t table, absl::Span<const uint64_t> ids,
                               absl::Span<const float> gradients) {
      TakeRows(table, ids, gradients, step);
    };
    const absl::StatusOr<BatchResult> result = model.Gradients(
        *staged, /*seed=*/1, {.variable = take_variable, .rows = take_rows});
    EXPECT_OK(result);
    step.result = *result;
    EXPECT_OK(model.Stage(batch, *staged));
    FillRows(*staged);
    const absl::StatusOr<EvaluatedBatch> evaluated = model.Evaluate(*staged);
    EXPECT_OK(evaluated);
    EXPECT_EQ(evaluated->result.examples, batch.size);
    step.outputs.assign(evaluated->outputs.begin(), evaluated->outputs.end());
    return step;
  }
};

TEST_P(MicroBatchModelTest, GivesTheGradientOfTheWholeBatch) {
  const std::unique_ptr<Model> whole = Make(Wide());
  for (const int64_t size : {7, 1, 6}) {
    const Step want = Run(*whole, ItemsBatch(size));
    for (const int micro_batch : {1, 2, 3, 6}) {
      SCOPED_TRACE(absl::StrCat(size, " in ", micro_batch));
      const Step got = Run(*MakeSplit(Wide(), micro_batch), ItemsBatch(size));
      EXPECT_EQ(got.result.examples, want.result.examples);
      EXPECT_NEAR(got.result.loss_sum, want.result.loss_sum, 1e-5);
      for (size_t i = 0; i < want.variables.size(); ++i) {
        EXPECT_THAT(got.variables[i],
                    Pointwise(FloatNear(1e-6), want.variables[i]));
      }
      EXPECT_EQ(got.calls_of_rows, 2);
      ASSERT_EQ(got.rows.size(), want.rows.size());
      for (const auto& [id, row] : want.rows) {
        ASSERT_TRUE(got.rows.contains(id)) << id.second;
        EXPECT_THAT(got.rows.at(id), Pointwise(FloatNear(1e-6), row));
      }
      EXPECT_THAT(got.outputs, Pointwise(FloatNear(1e-6), want.outputs));
    }
  }
}

TEST_P(MicroBatchModelTest, ABatchThatIsSmallEnoughHasTheModelsBits) {
  const std::unique_ptr<Model> whole = Make(Wide());
  const Step want = Run(*whole, ItemsBatch(5));
  const Step got = Run(*MakeSplit(Wide(), 5), ItemsBatch(5));
  EXPECT_EQ(got.variables, want.variables);
  EXPECT_EQ(got.rows, want.rows);
  EXPECT_EQ(got.result.loss_sum, want.result.loss_sum);
}

TEST_P(MicroBatchModelTest, SumsInTheMemoryOfTheDeviceHaveTheBitsOfTheHosts) {
  const std::string layers =
      "layer { name: 'n' batch_normalization {} }"
      "layer { name: 'o' dropout { rate: .25 } }";
  for (const int micro_batch : {1, 2, 3, 6}) {
    const std::unique_ptr<Model> on_host = MakeSplit(Wide(layers), micro_batch);
    const std::unique_ptr<Model> on_device =
        MakeSplit(Wide(layers), micro_batch);
    ASSERT_EQ(on_device->device_training() == nullptr,
              device().shares_host_memory());
    if (device().shares_host_memory()) continue;
    for (const int64_t size : {7, 1, 6}) {
      SCOPED_TRACE(absl::StrCat(size, " in ", micro_batch));
      const Step want = Run(*on_host, ItemsBatch(size));
      const Step got = RunOnDevice(*on_device, ItemsBatch(size));
      ASSERT_EQ(got.variables.size(), want.variables.size());
      for (size_t i = 0; i < want.variables.size(); ++i) {
        EXPECT_EQ(BitsOf(got.variables[i]), BitsOf(want.variables[i]))
            << on_host->variables()[i].name;
      }
      EXPECT_EQ(got.rows, want.rows);
      EXPECT_EQ(got.calls_of_rows, want.calls_of_rows);
      EXPECT_EQ(got.result.examples, want.result.examples);
      EXPECT_EQ(got.result.loss_sum, want.result.loss_sum);
    }
  }
}

TEST_P(MicroBatchModelTest, SumsInPiecesHaveTheSameBits) {
  const job::Model spec = Wide("layer { name: 'h' dense { units: 3 } }");
  for (const int micro_batch : {2, 3, 6}) {
    const std::unique_ptr<Model> whole = MakeSplit(spec, micro_batch);
    const std::unique_ptr<Model> model = MakeSplit(spec, micro_batch);
    if (device().shares_host_memory()) continue;
    ASSERT_OK(model->device_training()->Variables().status());
    const size_t count = model->variables().size();
    ASSERT_OK_AND_ASSIGN(const auto pieces,
                         model->device_training()->WriteInPieces(
                             {{count - 1, count}, {1, count - 1}, {0, 1}}));
    for (const int64_t size : {7, 1, 6, 6, 6}) {
      SCOPED_TRACE(absl::StrCat(size, " in ", micro_batch));
      const Step want = RunOnDevice(*whole, ItemsBatch(size));
      const Step got = RunOnDevice(*model, ItemsBatch(size), pieces);
      EXPECT_EQ(got.variables, want.variables);
      EXPECT_EQ(got.rows, want.rows);
    }
  }
}

// One memory serves batches of all sizes.
TEST_P(MicroBatchModelTest, StepsOfOtherSizesDoNotDisturbEachOther) {
  const std::unique_ptr<Model> model = MakeSplit(Wide(), 2);
  const Step want = Run(*model, ItemsBatch(7));
  Run(*model, ItemsBatch(2));
  Run(*model, ItemsBatch(11));
  const Step again = Run(*model, ItemsBatch(7));
  EXPECT_EQ(again.variables, want.variables);
  EXPECT_EQ(again.rows, want.rows);
}

TEST_P(MicroBatchModelTest, MovingMomentsGetTheMeanOfTheMicroBatches) {
  const job::Model spec = Wide("layer { name: 'n' batch_normalization {} }");
  const Batch batch = ItemsBatch(6);
  Batch halves[2];
  for (const int half : {0, 1}) {
    halves[half] = ItemsBatch(6);
    Batch& of = halves[half];
    of.size = 3;
    const auto cut = [half](std::vector<float>& all) {
      const size_t count = all.size() / 2;
      all = {all.begin() + half * count, all.begin() + (half + 1) * count};
    };
    cut(of.dense[0].values);
    cut(of.labels);
    cut(of.weights);
    IdFeature& ids = of.ids[0];
    const IdFeature all = ids;
    const int32_t begin = all.offsets[3 * half],
                  end = all.offsets[3 * half + 3];
    for (int i = 0; i <= 3; ++i) {
      ids.offsets[i] = all.offsets[3 * half + i] - begin;
    }
    ids.offsets.resize(4);
    ids.ids = {all.ids.begin() + begin, all.ids.begin() + end};
    ids.weights = {all.weights.begin() + begin, all.weights.begin() + end};
  }
  const Step split = Run(*MakeSplit(spec, 3), batch);
  const std::unique_ptr<Model> model = Make(spec);
  const Step first = Run(*model, halves[0]), second = Run(*model, halves[1]);
  int moving = 0;
  for (size_t i = 0; i < split.variables.size(); ++i) {
    moving += model->variables()[i].trained ? 0 : 1;
    std::vector<float> mean;
    for (size_t j = 0; j < split.variables[i].size(); ++j) {
      mean.push_back((first.variables[i][j] + second.variables[i][j]) / 2);
    }
    EXPECT_THAT(split.variables[i], Pointwise(FloatNear(1e-6), mean))
        << model->variables()[i].name;
  }
  EXPECT_EQ(moving, 2);
}

TEST_P(MicroBatchModelTest, AJobWithoutMicroBatchesKeepsItsModel) {
  for (const job::Job& job : {job::Job(), JobWith(8, 8), JobWith(8, 9)}) {
    std::unique_ptr<Model> model = Make(Wide());
    const Model* const same = model.get();
    EXPECT_EQ(SplitBatches(std::move(model), device(), job).get(), same);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, MicroBatchModelTest, DevicesUnderTest(),
                         DeviceName);

}  // namespace
}  // namespace parasol
