// A training step asks no more of CUDA than it did: each call costs the host
// some microseconds.

#include "tests/benchmark/compute/cuda_calls.h"

#include <map>
#include <string>

#include "base/status_matchers.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

// Most calls of a step, without CUDA graphs.
struct Bounds {
  int64_t launches = 0;  // kernels, products, memsets
  int64_t copies_in = 0;
  int64_t copies_out = 0;
  int64_t events = 0;  // recorded, and waited for by streams or the host
  int64_t device_selections = 0;
};

const std::map<std::string, Bounds> kBounds = {
    {"mlp", {11, 3, 3, 14, 0}},
    {"resnet56", {486, 5, 5, 22, 0}},
    {"mlp, dropout", {13, 4, 3, 14, 0}},
    {"wide_deep", {26, 4, 3, 14, 0}},
    {"deepfm", {33, 6, 5, 22, 0}},
    {"mlp, alone", {12, 1, 1, 6, 0}},
    {"wide_deep, alone", {28, 2, 1, 6, 0}},
    {"deepfm, alone", {35, 2, 1, 6, 0}},
    {"resnet56, bf16", {495, 5, 5, 22, 0}},
    {"block, bf16", {100, 5, 5, 22, 0}},
};

TEST(CudaCallsTest, AStepMakesNoMoreThanItsBounds) {
  for (const CountedModel& counted : AllCountedModels()) {
    SCOPED_TRACE(counted.name);
    ASSERT_OK_AND_ASSIGN(const cuda_on_host::Counts counts,
                         CallsOfAStep(counted, /*cuda_graphs=*/false));
    const Bounds& bounds = kBounds.at(counted.name);
    EXPECT_LE(counts.kernels + counts.library_calls + counts.memsets,
              bounds.launches);
    EXPECT_LE(counts.copies_in, bounds.copies_in);
    EXPECT_LE(counts.copies_out, bounds.copies_out);
    EXPECT_LE(counts.records + counts.stream_waits + counts.synchronizations,
              bounds.events);
    EXPECT_LE(counts.device_selections, bounds.device_selections);
    EXPECT_EQ(counts.graph_launches, 0);
  }
}

// In TF32 the same libraries compute the same layers, and nothing is converted.
// In bfloat16 three arrays are converted: the images that come, the means of
// the last ones, and the gradient by these. A dense layer's three products
// round both factors, as they always did.
TEST(CudaCallsTest, OnlyTheBordersOfImagesAreConverted) {
  constexpr int kConversions = 3;
  constexpr int kRoundedFactors = 3 * 2;
  int compared = 0;
  for (CountedModel counted : AllCountedModels()) {
    if (counted.precision != Precision::kBfloat16) continue;
    SCOPED_TRACE(counted.name);
    ASSERT_OK_AND_ASSIGN(const cuda_on_host::Counts counts,
                         CallsOfAStep(counted, /*cuda_graphs=*/false));
    counted.precision = Precision::kTf32;
    ASSERT_OK_AND_ASSIGN(const cuda_on_host::Counts in_tf32,
                         CallsOfAStep(counted, /*cuda_graphs=*/false));
    EXPECT_EQ(counts.kernels, in_tf32.kernels + kConversions + kRoundedFactors);
    EXPECT_EQ(counts.library_calls, in_tf32.library_calls);
    ++compared;
  }
  EXPECT_EQ(compared, 2);
}

// What is left are the copies of the batch, its rows and the values, and the
// way of the rows' gradients, of which there is another number each time; or
// the updates on the device, one of all variables and one of all tables.
TEST(CudaCallsTest, AGraphLaunchesTheWholePass) {
  for (const CountedModel& counted : AllCountedModels()) {
    // Its layers are as recordable as the MLP's, and its steps take seconds.
    if (counted.name.starts_with("resnet56")) continue;
    SCOPED_TRACE(counted.name);
    const bool has_tables = counted.model.sparse_table_size() > 0;
    const bool updates = counted.updates == TrainingStep::Updates::kOnDevice;
    ASSERT_OK_AND_ASSIGN(const cuda_on_host::Counts counts,
                         CallsOfAStep(counted, /*cuda_graphs=*/true));
    EXPECT_EQ(counts.graph_launches, 1);
    EXPECT_EQ(counts.library_calls + counts.memsets, 0);
    EXPECT_EQ(counts.kernels, updates ? 1 + has_tables : 0);
    const bool fetches_rows = has_tables && !updates;
    EXPECT_EQ(counts.copies_out, fetches_rows ? 1 : 0);
    EXPECT_LE(counts.records + counts.stream_waits, fetches_rows ? 5 : 2);
    // The arguments of a pass, if it has any, are copied in the graph.
    const bool has_arguments = has_tables || counted.name == "mlp, dropout";
    EXPECT_LE(counts.copies_in,
              kBounds.at(counted.name).copies_in - has_arguments);
    if (updates) {
      EXPECT_EQ(counts.copies_in, 1) << "the batch";
      EXPECT_EQ(counts.synchronizations, 1) << "the wait for the losses";
    }
  }
}

}  // namespace
}  // namespace parasol
