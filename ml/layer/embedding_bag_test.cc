#include "ml/layer/embedding_bag.h"

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

std::vector<double> Combined(const LayerValues& values, bool mean) {
  std::vector<double> y(values.examples * values.width);
  for (int64_t i = 0; i < values.examples; ++i) {
    double weights = 0;
    double* const row = &y[i * values.width];
    for (int32_t j = values.offsets[i]; j < values.offsets[i + 1]; ++j) {
      const double weight = values.weights.empty() ? 1 : values.weights[j];
      weights += weight;
      for (int64_t k = 0; k < values.width; ++k) {
        row[k] += weight * values.rows[values.positions[j] * values.width + k];
      }
    }
    for (int64_t k = 0; k < values.width; ++k) {
      if (mean && weights != 0) row[k] /= weights;
      if (!values.variables.empty()) row[k] += values.variables[0][k];
    }
  }
  return y;
}

class EmbeddingBagTest : public LayerTest {};

TEST_P(EmbeddingBagTest, OutputIsTheCombinedRowsOfAnExample) {
  for (bool mean : {false, true}) {
    for (bool use_bias : {false, true}) {
      for (bool weighted : {false, true}) {
        for (int64_t width : {1, 4, 17}) {
          job::EmbeddingBag spec;
          spec.set_use_bias(use_bias);
          if (mean) spec.set_combiner(job::EmbeddingBag::MEAN);
          const std::vector<LayerInput> inputs = {
              {.kind = LayerInput::Kind::kIds}};
          ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> layer,
                               MakeEmbeddingBag(spec, inputs, width));
          LayerValues values = RandomLayerValues(*layer, inputs, 6);
          if (!weighted) values.weights.clear();
          CheckLayer(*layer, values, [mean](const LayerValues& v) {
            return Combined(v, mean);
          });
        }
      }
    }
  }
}

TEST_P(EmbeddingBagTest, AMeanOfWeightsThatAddUpToNothingIsZero) {
  job::EmbeddingBag spec;
  spec.set_combiner(job::EmbeddingBag::MEAN);
  const std::vector<LayerInput> inputs = {{.kind = LayerInput::Kind::kIds}};
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> layer,
                       MakeEmbeddingBag(spec, inputs, /*table_width=*/2));
  const LayerValues values = {.examples = 2,
                              .inputs = {{}},
                              .width = 2,
                              .rows = {1, 2, 3, 4},
                              .offsets = {0, 2, 3},
                              .positions = {0, 1, 1},
                              .weights = {1, -1, 2}};
  const LayerResults results = RunLayer(*layer, values, {1, 1, 1, 1});
  EXPECT_EQ(results.y, std::vector<float>({0, 0, 3, 4}));
  EXPECT_EQ(results.row_gradients, std::vector<float>({0, 0, 1, 1}));
}

TEST(MakeEmbeddingBagTest, TakesOneListOfIds) {
  const auto is_invalid = StatusIs(absl::StatusCode::kInvalidArgument);
  const LayerInput ids = {.kind = LayerInput::Kind::kIds};
  EXPECT_THAT(MakeEmbeddingBag({}, {{.shape = {3}}}, 4), is_invalid);
  EXPECT_THAT(MakeEmbeddingBag({}, {ids, ids}, 4), is_invalid);
}

INSTANTIATE_TEST_SUITE_P(Devices, EmbeddingBagTest, DevicesUnderTest(),
                         DeviceName);

}  // namespace
}  // namespace parasol
