// A step in the steady state allocates nothing on the thread that computes.

#include <atomic>
#include <memory>
#include <string>

#include "base/status_matchers.h"
#include "gtest/gtest.h"
#include "ml/model/model.h"
#include "ml/model/testing/allocation_count.h"
#include "ml/model/testing/model_fixture.h"

namespace parasol {
namespace {

class ModelAllocationTest : public ModelTestBase {
 protected:
  static int AllocationsOfAStep(Model& model, const Batch& batch,
                                StagedBatch& staged) {
    absl::Status is_staged;
    absl::StatusOr<BatchResult> result;
    const int allocations = CountAllocations([&] {
      is_staged = model.Stage(batch, staged);
      result = model.Gradients(
          staged, /*seed=*/1, {.variable = IgnoreVariable, .rows = IgnoreRows});
      for (size_t i = 0; i < model.variables().size(); ++i) {
        model.Upload(i).IgnoreError();
      }
    });
    EXPECT_OK(is_staged);
    EXPECT_OK(result);
    return allocations;
  }
};

TEST_P(ModelAllocationTest, TheCountCounts) {
#if defined(PARASOL_SANITIZER)
  GTEST_SKIP() << "a sanitizer allocates itself";
#endif
  std::unique_ptr<std::atomic<int>> number;
  EXPECT_GT(
      CountAllocations([&] { number = std::make_unique<std::atomic<int>>(7); }),
      0);
  EXPECT_EQ(*number, 7);
}

TEST_P(ModelAllocationTest, AStepOfAGraphAllocatesNothing) {
  const std::unique_ptr<Model> model = Make(
      "input_shape: [4, 4] layer { flatten {} }"
      "layer { name: 'a' dense { units: 16 activation: RELU kernel_l2: 1e-3 } }"
      "layer { name: 'b' dense { units: 16 } }"
      "layer { add {} input: ['b', 'a'] } layer { activation: RELU }"
      "layer { dense { units: 4 } }");
  SetAll(*model, RandomValues(*model));
  const Batch whole = RandomBatch(32, {4, 4}, 4);
  const Batch last = RandomBatch(5, {4, 4}, 4);
  const auto staged = model->NewStagedBatch();
  for (int step = 1; step <= 2; ++step) {
    AllocationsOfAStep(*model, whole, *staged);
    AllocationsOfAStep(*model, last, *staged);
  }
  for (int step = 3; step <= 10; ++step) {
    EXPECT_EQ(AllocationsOfAStep(*model, whole, *staged), 0) << step;
    EXPECT_EQ(AllocationsOfAStep(*model, last, *staged), 0) << step;
  }
}

TEST_P(ModelAllocationTest, AStepWithTablesAllocatesNothing) {
  const std::unique_ptr<Model> model = Make(
      "input { name: 'n' dense { shape: 3 } } input { name: 'c' ids {} }"
      "sparse_table { name: 't' width: 4 }"
      "layer { name: 'n2' dense { units: 4 activation: SIGMOID } input: 'n' }"
      "layer { name: 'e' embedding_bag { table: 't' } input: 'c' }"
      "layer { concatenate {} input: ['n2', 'e'] }"
      "layer { dropout { rate: .5 } } layer { dense { units: 4 } }");
  SetAll(*model, RandomValues(*model));
  Batch batch = RandomBatch(32, {3}, 4);
  IdFeature& ids = batch.ids.emplace_back();
  for (int i = 0; i <= batch.size; ++i) ids.offsets.push_back(3 * i);
  for (int i = 0; i < 3 * batch.size; ++i) ids.ids.push_back(i * i % 50);
  const auto staged = model->NewStagedBatch();
  for (int step = 1; step <= 10; ++step) {
    const int count = AllocationsOfAStep(*model, batch, *staged);
    EXPECT_TRUE(step < 3 || count == 0) << step << ": " << count;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, ModelAllocationTest, ::testing::Values("cpu"),
                         DeviceName);

}  // namespace
}  // namespace parasol
