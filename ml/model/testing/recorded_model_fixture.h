#ifndef PARASOL_ML_MODEL_TESTING_RECORDED_MODEL_FIXTURE_H_
#define PARASOL_ML_MODEL_TESTING_RECORDED_MODEL_FIXTURE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/status_matchers.h"
#include "gtest/gtest.h"
#include "ml/device/testing/device_fixture.h"
#include "ml/device/testing/recording_device.h"
#include "ml/input/feature/batch.h"
#include "ml/model/model.h"
#include "ml/model/testing/model_fixture.h"

namespace parasol {

// Compares passes of a model that may be recorded with passes of models that
// never are. The suite needs RecordersUnderTest().
class RecordedModelFixture : public ModelTestBase {
 protected:
  // Arguments and results of a pass.
  struct Step {
    Batch batch = {};
    Values values = {};
    uint64_t seed = 0;
    Values gradients = {};
    // Ids and gradients of rows, by table.
    std::vector<std::vector<uint64_t>> ids = {};
    Values row_gradients = {};
    double loss_sum = 0;
  };

  // Null on a CUDA device, which counts nothing.
  RecordingDevice* fake() { return dynamic_cast<RecordingDevice*>(&device()); }

  static Values InitialValues(const Model& model) {
    Values values = RandomValues(model);
    for (size_t i = 0; i < values.size(); ++i) {
      for (float& value : values[i]) {
        value = model.variables()[i].trained ? .3f * value : 1;
      }
    }
    return values;
  }

  // Writes rows that follow from the seed and their ids.
  static void FillRows(const StagedBatch& staged, uint64_t seed) {
    for (const StagedBatch::Rows& rows : staged.rows()) {
      for (size_t i = 0; i < rows.values.size(); ++i) {
        const uint64_t id = rows.ids[i * rows.ids.size() / rows.values.size()];
        rows.values[i] = .01f * ((id * 31 + i * 7 + seed * 13) % 101) - .5f;
      }
    }
  }

  static Step Run(Model& model, const Batch& batch, StagedBatch& staged,
                  const Values& values, uint64_t seed = 1) {
    SetAll(model, values);
    EXPECT_OK(model.Stage(batch, staged));
    FillRows(staged, seed);
    Step step = {.batch = batch, .values = values, .seed = seed};
    step.gradients.resize(values.size());
    const absl::StatusOr<BatchResult> result = model.Gradients(
        staged, seed,
        {.variable =
             [&](size_t index, absl::Span<const float> gradient) {
               step.gradients[index].assign(gradient.begin(), gradient.end());
             },
         .rows =
             [&](size_t, absl::Span<const uint64_t> ids,
                 absl::Span<const float> gradients) {
               step.ids.emplace_back(ids.begin(), ids.end());
               step.row_gradients.emplace_back(gradients.begin(),
                                               gradients.end());
             }});
    EXPECT_OK(result);
    if (result.ok()) step.loss_sum = result->loss_sum;
    return step;
  }

  // Compares with the first steps of other models, which are never recorded, to
  // the last bit.
  void ExpectPlain(const std::string& layers, const std::vector<Step>& steps) {
    for (size_t i = 0; i < steps.size(); ++i) {
      const std::unique_ptr<Model> model = Make(layers);
      const std::unique_ptr<StagedBatch> staged = model->NewStagedBatch();
      const Step want =
          Run(*model, steps[i].batch, *staged, steps[i].values, steps[i].seed);
      ASSERT_EQ(steps[i].gradients, want.gradients) << "step " << i;
      ASSERT_EQ(steps[i].ids, want.ids) << "step " << i;
      ASSERT_EQ(steps[i].row_gradients, want.row_gradients) << "step " << i;
      ASSERT_EQ(steps[i].loss_sum, want.loss_sum) << "step " << i;
    }
  }

  void ExpectReplayed(int at_least) {
    ASSERT_NE(device().recorder(), nullptr);
    EXPECT_GE(device().recorder()->replayed(), at_least);
    if (fake() != nullptr) {
      EXPECT_EQ(fake()->stale(), 0);
    }
  }
};

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_TESTING_RECORDED_MODEL_FIXTURE_H_
