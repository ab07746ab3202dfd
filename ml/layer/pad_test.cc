#include "ml/layer/pad.h"

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

using ::testing::ElementsAre;
using ::testing::HasSubstr;

job::Pad Spec(const std::vector<int64_t>& before,
              const std::vector<int64_t>& after) {
  job::Pad spec;
  spec.mutable_before()->Add(before.begin(), before.end());
  spec.mutable_after()->Add(after.begin(), after.end());
  return spec;
}

class PadLayerTest : public LayerTest {};

TEST_P(PadLayerTest, EachExampleHasZerosAroundIt) {
  const std::vector<LayerInput> inputs = {{.shape = {2, 3, 4}}};
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> layer,
                       MakePad(Spec({1, 0, 2}, {0, 3, 1}), inputs));
  EXPECT_THAT(layer->output_shape(), ElementsAre(3, 6, 7));
  CheckLayer(*layer, RandomLayerValues(*layer, inputs, /*examples=*/3),
             [](const LayerValues& values) {
               std::vector<double> y(3 * 3 * 6 * 7);
               for (size_t i = 0; i < values.inputs[0].size(); ++i) {
                 const size_t c = i % 4, w = i / 4 % 3, h = i / 12 % 2;
                 const size_t n = i / 24;
                 y[((n * 3 + h + 1) * 6 + w) * 7 + c + 2] = values.inputs[0][i];
               }
               return y;
             });
}

TEST(MakePadTest, EachAxisNeedsANumberThatIsNotNegative) {
  const std::vector<LayerInput> inputs = {{.shape = {2, 3}}};
  EXPECT_THAT(
      MakePad(Spec({1}, {1, 1}), inputs),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("before is [1]")));
  EXPECT_THAT(
      MakePad(Spec({1, 1}, {1, -1}), inputs),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("after is -1")));
  EXPECT_THAT(
      MakePad(Spec(std::vector<int64_t>(8), std::vector<int64_t>(8)),
              {{.shape = Shape(8, 1)}}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("axes, not 8")));
}

INSTANTIATE_TEST_SUITE_P(Devices, PadLayerTest, DevicesUnderTest(), DeviceName);

}  // namespace
}  // namespace parasol
