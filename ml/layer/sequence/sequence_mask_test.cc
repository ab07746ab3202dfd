#include "ml/layer/sequence/sequence_mask.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/layer/testing/layer_fixture.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

class SequenceMaskTest : public LayerTest {};

TEST_P(SequenceMaskTest, IsOneInStepsWithAnId) {
  constexpr int64_t kSteps = 5;
  const std::vector<LayerInput> inputs = {
      {.kind = LayerInput::Kind::kIds, .shape = {kSteps}}};
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> layer,
                       MakeSequenceMask(inputs));
  EXPECT_EQ(layer->output_shape(), Shape({kSteps}));
  CheckLayer(*layer, RandomLayerValues(*layer, inputs, /*examples=*/6),
             [](const LayerValues& v) {
               std::vector<double> y(v.examples * kSteps);
               for (int64_t i = 0; i < v.examples; ++i) {
                 std::fill_n(y.begin() + i * kSteps,
                             v.offsets[i + 1] - v.offsets[i], 1);
               }
               return y;
             });
}

TEST(MakeSequenceMaskTest, OnlyASequenceHasOne) {
  EXPECT_THAT(MakeSequenceMask({{.kind = LayerInput::Kind::kIds}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("give the input a sequence")));
  EXPECT_THAT(MakeSequenceMask({{.shape = {3}}}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

INSTANTIATE_TEST_SUITE_P(Devices, SequenceMaskTest, DevicesUnderTest(),
                         DeviceName);

}  // namespace
}  // namespace parasol
