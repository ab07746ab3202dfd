// A step like an earlier one allocates nothing in a function.

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gtest/gtest.h"
#include "ml/model/function/testing/function_fixture.h"
#include "ml/model/testing/allocation_count.h"

namespace parasol {
namespace {

class FunctionAllocationTest : public FunctionTestBase {};

// Three calls are open at once, as in a step of a GAN.
TEST_P(FunctionAllocationTest, AStepOfSeveralCallsAllocatesNothing) {
  const std::unique_ptr<ModelFunction> function = MakeFunction(
      "input { name: 'n' dense { shape: 3 } } input { name: 'c' ids {} }"
      "sparse_table { name: 't' width: 4 }"
      "layer { name: 'n2' dense { units: 4 activation: SIGMOID } input: 'n' }"
      "layer { name: 'e' embedding_bag { table: 't' } input: 'c' }"
      "layer { concatenate {} input: ['n2', 'e'] } layer { cross {} }"
      "layer { batch_normalization {} }"
      "layer { dropout { rate: .5 } } layer { dense { units: 4 } }");
  const Values values = ValuesFor(function->graph());
  Batch batch = RandomBatch(32, {3}, 4);
  IdFeature& ids = batch.ids.emplace_back();
  for (int i = 0; i <= batch.size; ++i) ids.offsets.push_back(3 * i);
  for (int i = 0; i < 3 * batch.size; ++i) ids.ids.push_back(i * i % 50);
  const BatchViews inputs(batch);
  const auto variables = ConstSpans(values);
  Values by_variables = WantTrained(function->graph());
  Values by_inputs = WantInputs(batch);
  const auto variable_spans = Spans(by_variables);
  const auto input_spans = Spans(by_inputs);
  Values changes;
  for (size_t i = 0; i < values.size(); ++i) {
    changes.emplace_back(function->IsChangedByCalls(i) ? values[i].size() : 0);
  }
  const auto change_spans = Spans(changes);
  const std::vector<float> ones(32 * 4, 1.f);
  const std::vector<absl::Span<const float>> by_outputs = {ones};
  const auto rows = [](size_t table, absl::Span<const uint64_t> ids,
                       absl::Span<float> values) {
    FillRows(table, ids, values);
    return absl::OkStatus();
  };
  int delivered = 0;
  const auto sink = [&delivered](size_t, absl::Span<const uint64_t>,
                                 absl::Span<const float>) { ++delivered; };
  absl::Status status;
  const auto step = [&](uint64_t seed) {
    const auto forward = [&] {
      return function->Forward(inputs.all(), variables,
                               {.training = true, .seed = seed}, rows);
    };
    const auto first = forward();
    const auto second = forward();
    const auto third = forward();
    for (const auto* const call : {&first, &second, &third}) {
      status.Update(call->status());
      if (!status.ok()) return;
      status.Update(function->ReadChanges(**call, change_spans));
      status.Update(function->Backward(
          **call, by_outputs,
          {.variables = variable_spans, .inputs = input_spans, .rows = sink}));
      // Through it, as of a generator's loss.
      status.Update(
          function->Backward(**call, by_outputs, {.inputs = input_spans}));
    }
  };
  for (int i = 1; i <= 8; ++i) {
    const int count = CountAllocations([&] { step(i); });
    EXPECT_TRUE(i < 4 || count == 0) << i << ": " << count;
  }
  EXPECT_OK(status);
  EXPECT_EQ(delivered, 24);
}

INSTANTIATE_TEST_SUITE_P(Devices, FunctionAllocationTest,
                         ::testing::Values("cpu"), DeviceName);

}  // namespace
}  // namespace parasol
