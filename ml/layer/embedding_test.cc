#include "ml/layer/embedding.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gtest/gtest.h"
#include "ml/layer/testing/layer_fixture.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

std::vector<double> Rows(const LayerValues& values) {
  std::vector<double> y;
  for (int32_t position : values.positions) {
    for (int64_t k = 0; k < values.width; ++k) {
      y.push_back(values.rows[position * values.width + k]);
    }
  }
  return y;
}

class EmbeddingTest : public LayerTest {};

TEST_P(EmbeddingTest, OutputIsTheRowOfEachId) {
  for (int64_t width : {1, 4, 17}) {
    const std::vector<LayerInput> inputs = {
        {.kind = LayerInput::Kind::kIds, .ids_per_example = 3}};
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> layer,
                         MakeEmbedding({}, inputs, width));
    EXPECT_EQ(layer->output_shape(), Shape({3, width}));
    CheckLayer(*layer, RandomLayerValues(*layer, inputs, 5), Rows);
  }
}

// The rows of each example's ids, and zeros up to its last step.
std::vector<double> Steps(const LayerValues& values, int64_t steps) {
  std::vector<double> y(values.examples * steps * values.width);
  for (int64_t i = 0; i < values.examples; ++i) {
    auto to = y.begin() + i * steps * values.width;
    for (int32_t j = values.offsets[i]; j < values.offsets[i + 1]; ++j) {
      const auto row = values.rows.begin() + values.positions[j] * values.width;
      to = std::copy(row, row + values.width, to);
    }
  }
  return y;
}

TEST_P(EmbeddingTest, StepsOfASequenceWithoutAnIdAreZero) {
  // Examples have none to four ids.
  for (int64_t steps : {4, 6}) {
    const std::vector<LayerInput> inputs = {
        {.kind = LayerInput::Kind::kIds, .shape = {steps}}};
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> layer,
                         MakeEmbedding({}, inputs, /*table_width=*/5));
    EXPECT_EQ(layer->output_shape(), Shape({steps, 5}));
    EXPECT_FALSE(layer->NeedsEveryId());
    CheckLayer(*layer, RandomLayerValues(*layer, inputs, 7),
               [steps](const LayerValues& v) { return Steps(v, steps); });
  }
}

TEST(MakeEmbeddingTest, TakesAsManyIdsOfEachExample) {
  const auto is_invalid = StatusIs(absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(MakeEmbedding({}, {{.kind = LayerInput::Kind::kIds}}, 4),
              is_invalid);
  EXPECT_THAT(MakeEmbedding({}, {{.shape = {3}}}, 4), is_invalid);
  EXPECT_THAT(MakeEmbedding({}, {}, 4), is_invalid);
}

TEST(MakeEmbeddingTest, KnowsItsTable) {
  job::Embedding spec;
  spec.set_table("t");
  spec.set_l2(0.5);
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<const Layer> layer,
      MakeEmbedding(
          spec, {{.kind = LayerInput::Kind::kIds, .ids_per_example = 1}}, 4));
  EXPECT_EQ(layer->table(), "t");
  EXPECT_EQ(layer->row_l2(), 0.5);
}

INSTANTIATE_TEST_SUITE_P(Devices, EmbeddingTest, DevicesUnderTest(),
                         DeviceName);

}  // namespace
}  // namespace parasol
