#include "ml/layer/embedding.h"

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
