// A recorded pass has the random numbers and the rows of the present step, not
// of the step in which it was recorded.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/device/device.h"
#include "ml/device/testing/device_fixture.h"
#include "ml/input/feature/batch.h"
#include "ml/kernel/testing/reference.h"
#include "ml/model/model.h"
#include "ml/model/testing/recorded_model_fixture.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::Gt;
using ::testing::Lt;

// Two dropouts, which draw different numbers.
constexpr char kDropouts[] =
    "input_shape: 200 layer { dropout { rate: .3 } } "
    "layer { dense { units: 20 activation: TANH } } "
    "layer { dropout { rate: .5 } } layer { dense { units: 3 } }";

// Every kind of look-up: a table that two inputs read, one beside it that
// shares a look-up, one with L2 terms and bags of any size, and one that nobody
// reads. Each has its start in memory behind those before it.
constexpr char kTables[] = R"(
  input { name: "x" dense { shape: 4 } }
  input { name: "pair" ids { column { name: "a" identity { num_ids: 100000 } }
                             column { name: "b" identity { num_ids: 100000 } } } }
  input { name: "many" ids {} }
  input { name: "more" ids {} }
  sparse_table { name: "spare" width: 7 }
  sparse_table { name: "deep" width: 5 }
  sparse_table { name: "wide" width: 1 }
  sparse_table { name: "bags" width: 3 }
  layer { name: "e" input: "pair" embedding { table: "deep" } }
  layer { name: "pairs" factorization_machine {} }
  layer { name: "flat" input: "e" flatten {} }
  layer { name: "w" input: "pair" embedding_bag { table: "wide" use_bias: true } }
  layer { name: "m" input: "many" embedding_bag { table: "bags" combiner: MEAN l2: .01 } }
  layer { name: "n" input: "more" embedding_bag { table: "bags" l2: .01 } }
  layer { name: "all" input: ["x", "flat", "pairs", "w", "m", "n"] concatenate {} }
  layer { name: "drop" dropout { rate: .4 } }
  layer { dense { units: 6 activation: RELU kernel_l2: .01 } }
  layer { dense { units: 3 } }
)";

// `ids_per_example` ids, `distinct` of them different; so large a number that
// no id comes twice, or half as large a one, and each comes twice at most. Then
// the sum of its gradients has the same bits in any order.
IdFeature IdsOf(int64_t examples, int64_t ids_per_example, uint64_t first,
                int64_t times) {
  IdFeature feature = {.offsets = {0}};
  for (int64_t i = 0; i < examples * ids_per_example; ++i) {
    feature.ids.push_back(first + i / times);
  }
  for (int64_t i = 1; i <= examples; ++i) {
    feature.offsets.push_back(i * ids_per_example);
  }
  return feature;
}

// `ids`: number of ids of an example in the inputs that may have any.
Batch BatchOf(int64_t size, int64_t ids, uint64_t seed) {
  Batch batch = {.size = size, .dense = {{.shape = {4}}}};
  for (const double x : RandomMatrix(size, 4, seed).values) {
    batch.dense[0].values.push_back(x);
  }
  batch.ids = {IdsOf(size, 2, seed * 10, /*times=*/1 + seed % 2),
               IdsOf(size, ids, seed, /*times=*/1 + seed % 2),
               IdsOf(size, ids, 5000 + seed, /*times=*/1)};
  if (seed / 16 % 2 == 1) {
    for (size_t i = 0; i < batch.ids[1].ids.size(); ++i) {
      batch.ids[1].weights.push_back(.25f * (1 + i % 5));
    }
  }
  for (int64_t i = 0; i < size; ++i) batch.labels.push_back((seed + i) % 3);
  return batch;
}

// The inputs that a dropout has set to zero, for a batch of one example, by the
// gradient of the kernel above it.
std::vector<bool> RowsOfZeros(const std::vector<float>& gradient) {
  constexpr int kUnits = 20;
  std::vector<bool> zeros;
  for (size_t i = 0; i < gradient.size(); i += kUnits) {
    zeros.push_back(std::all_of(&gradient[i], &gradient[i] + kUnits,
                                [](float element) { return element == 0; }));
  }
  return zeros;
}

class RecordedArgumentsTest : public RecordedModelFixture {
 protected:
  // A step on each batch, with its number for a seed, with two staged batches
  // in another rhythm than the gradients' two sides.
  static std::vector<Step> RunAll(Model& model,
                                  const std::vector<Batch>& batches) {
    const std::array<std::unique_ptr<StagedBatch>, 2> staged = {
        model.NewStagedBatch(), model.NewStagedBatch()};
    const Values values = InitialValues(model);
    std::vector<Step> steps;
    for (size_t i = 0; i < batches.size(); ++i) {
      steps.push_back(
          Run(model, batches[i], *staged[i / 2 % 2], values, /*seed=*/i));
    }
    return steps;
  }
};

TEST_P(RecordedArgumentsTest, EachStepHasItsOwnRandomNumbers) {
  const std::unique_ptr<Model> model = Make(kDropouts);
  std::vector<Batch> batches;
  for (int i = 0; i < 40; ++i) {
    batches.push_back(RandomBatch(i % 5 == 4 ? 3 : 8, {200}, 3));
  }
  const std::vector<Step> steps = RunAll(*model, batches);
  ExpectReplayed(/*at_least=*/24);
  ExpectPlain(kDropouts, steps);
}

TEST_P(RecordedArgumentsTest, TheRandomNumbersAreThoseOfACpu) {
  const std::unique_ptr<Model> model = Make(kDropouts);
  const std::vector<Batch> batches(12, RandomBatch(1, {200}, 3));
  const std::vector<Step> steps = RunAll(*model, batches);
  ExpectReplayed(/*at_least=*/8);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Device> cpu, Device::Open("cpu"));
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<Model> on_cpu,
      Model::Create(ResolveGraph(Classifier(kDropouts)).value(), *cpu));
  const std::vector<Step> wanted = RunAll(*on_cpu, batches);
  for (size_t i = 0; i < steps.size(); ++i) {
    const std::vector<bool> dropped = RowsOfZeros(wanted[i].gradients[0]);
    EXPECT_EQ(RowsOfZeros(steps[i].gradients[0]), dropped) << "step " << i;
    // Five standard deviations.
    EXPECT_THAT(std::count(dropped.begin(), dropped.end(), true),
                AllOf(Gt(60 - 33), Lt(60 + 33)));
    if (i > 0) {
      EXPECT_NE(dropped, RowsOfZeros(wanted[i - 1].gradients[0]));
    }
  }
}

TEST_P(RecordedArgumentsTest, RowsMayBeAnyNumber) {
  const std::unique_ptr<Model> model = Make(kTables);
  std::vector<Batch> batches;
  for (int i = 0; i < 128; ++i) {
    // None at all, some, then more than there has been room for, twice, and
    // fewer again.
    const int64_t most = i < 24 ? 3 : i < 40 ? 20 : i < 60 ? 90 : 25;
    const int64_t ids = i % 4 == 3 ? 0 : 1 + i * 5 % most;
    batches.push_back(BatchOf(8, ids, i));
  }
  const std::vector<Step> steps = RunAll(*model, batches);
  ExpectReplayed(/*at_least=*/40);
  ExpectPlain(kTables, steps);
}

TEST_P(RecordedArgumentsTest, BatchesWithoutAnyIdAreRecordedToo) {
  constexpr char kBag[] =
      "input { name: 'x' dense { shape: 4 } } input { name: 'ids' ids {} } "
      "sparse_table { name: 'rows' width: 3 } "
      "layer { name: 'd' input: 'x' dense { units: 3 } } "
      "layer { name: 'b' input: 'ids' "
      "embedding_bag { table: 'rows' combiner: MEAN use_bias: true l2: .5 } } "
      "layer { input: ['d', 'b'] add {} }";
  const std::unique_ptr<Model> model = Make(kBag);
  std::vector<Batch> batches;
  for (int i = 0; i < 32; ++i) {
    Batch batch = BatchOf(4, i / 4 % 2 == 0 ? 0 : 2, i);
    batch.ids = {batch.ids[2]};
    batches.push_back(batch);
  }
  const std::vector<Step> steps = RunAll(*model, batches);
  ExpectReplayed(/*at_least=*/16);
  ExpectPlain(kBag, steps);
  EXPECT_TRUE(steps.back().row_gradients[0].size() > 0);
  EXPECT_TRUE(steps.front().row_gradients[0].empty());
}

TEST_P(RecordedArgumentsTest, AnEvaluationBetweenStepsLeavesThemAsTheyWere) {
  const std::unique_ptr<Model> model = Make(kTables);
  const std::unique_ptr<StagedBatch> staged = model->NewStagedBatch();
  const std::unique_ptr<StagedBatch> evaluated = model->NewStagedBatch();
  const Values values = InitialValues(*model);
  const Batch examples = BatchOf(30, 4, 1000);
  std::vector<Step> steps;
  double loss_sum = 0;
  for (int i = 0; i < 40; ++i) {
    steps.push_back(Run(*model, BatchOf(8, i % 4, i), *staged, values, i));
    if (i % 6 != 5) continue;
    ASSERT_OK(model->Stage(examples, *evaluated));
    FillRows(*evaluated, /*seed=*/3);
    ASSERT_OK_AND_ASSIGN(const EvaluatedBatch result,
                         model->Evaluate(*evaluated));
    if (loss_sum == 0) loss_sum = result.result.loss_sum;
    EXPECT_EQ(result.result.loss_sum, loss_sum) << "after step " << i;
  }
  ExpectReplayed(/*at_least=*/20);
  ExpectPlain(kTables, steps);
}

// As after a restart: the model is another one, and nothing has been recorded.
TEST_P(RecordedArgumentsTest, AModelThatGoesOnComputesWhatTheFirstOneWould) {
  std::vector<Batch> batches;
  for (int i = 0; i < 24; ++i) batches.push_back(BatchOf(8, 1 + i % 3, i));
  const std::unique_ptr<Model> first = Make(kTables);
  const std::vector<Step> steps = RunAll(*first, batches);
  const std::unique_ptr<Model> second = Make(kTables);
  const std::unique_ptr<StagedBatch> staged = second->NewStagedBatch();
  for (size_t i = batches.size() / 2; i < batches.size(); ++i) {
    const Step again =
        Run(*second, batches[i], *staged, steps[i].values, /*seed=*/i);
    EXPECT_EQ(again.gradients, steps[i].gradients) << "step " << i;
    EXPECT_EQ(again.row_gradients, steps[i].row_gradients) << "step " << i;
  }
  ExpectReplayed(/*at_least=*/10);
}

INSTANTIATE_TEST_SUITE_P(Devices, RecordedArgumentsTest, RecordersUnderTest(),
                         DeviceName);

}  // namespace
}  // namespace parasol
