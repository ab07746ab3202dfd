#include "ml/layer/interaction/weighted_sum.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_join.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/layer/testing/layer_fixture.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

std::vector<double> Sums(const LayerValues& values, const Shape& shape) {
  std::vector<double> y;
  for (int64_t i = 0; i < values.examples; ++i) {
    for (int64_t k = 0; k < shape[1]; ++k) {
      double sum = 0;
      for (int64_t n = 0; n < shape[0]; ++n) {
        sum += values.inputs[0][i * shape[0] + n] *
               values.inputs[1][(i * shape[0] + n) * shape[1] + k];
      }
      y.push_back(sum);
    }
  }
  return y;
}

class WeightedSumTest : public LayerTest {};

TEST_P(WeightedSumTest, IsTheSumOfTheRowsByTheirWeights) {
  const Shape shapes[] = {{1, 1}, {3, 1}, {1, 16}, {5, 7}, {3, 65}, {8, 16}};
  for (const Shape& shape : shapes) {
    SCOPED_TRACE(absl::StrJoin(shape, ", "));
    const std::vector<LayerInput> inputs = {{.shape = {shape[0]}},
                                            {.shape = shape}};
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> layer,
                         MakeWeightedSum(inputs));
    EXPECT_EQ(layer->output_shape(), Shape({shape[1]}));
    CheckLayer(*layer, RandomLayerValues(*layer, inputs, 3),
               [&](const LayerValues& v) { return Sums(v, shape); });
  }
}

TEST(MakeWeightedSumTest, TakesAWeightForEachRow) {
  const auto is_invalid = [](const char* message) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message));
  };
  EXPECT_THAT(MakeWeightedSum({{.shape = {3}}}), is_invalid("two inputs"));
  EXPECT_THAT(MakeWeightedSum({{.shape = {3}}, {.shape = {2, 4}}}),
              is_invalid("not [3] and [2, 4]"));
  EXPECT_THAT(MakeWeightedSum({{.shape = {3}}, {.shape = {3}}}),
              is_invalid("not [3] and [3]"));
}

INSTANTIATE_TEST_SUITE_P(Devices, WeightedSumTest, DevicesUnderTest(),
                         DeviceName);

}  // namespace
}  // namespace parasol
