#include "ml/layer/add.h"

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/layer/testing/layer_fixture.h"

namespace parasol {
namespace {

std::vector<double> Sum(const LayerValues& values) {
  std::vector<double> y(values.inputs[0].size());
  for (const std::vector<double>& x : values.inputs) {
    for (size_t i = 0; i < y.size(); ++i) y[i] += x[i];
  }
  return y;
}

std::vector<double> SumWithRelu(const LayerValues& values) {
  std::vector<double> y = Sum(values);
  for (double& value : y) value = value < 0 ? 0 : value;
  return y;
}

class AddTest : public LayerTest {};

TEST_P(AddTest, IsTheSumOfItsInputsWithAndWithoutRelu) {
  for (size_t count : {1, 2, 3, 5}) {
    SCOPED_TRACE(count);
    const std::vector<LayerInput> inputs(count, {.shape = {2, 3, 7}});
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> layer,
                         MakeAdd(inputs));
    const LayerValues values = RandomLayerValues(*layer, inputs, 3);
    CheckLayer(*layer, values, Sum);
    CheckLayer(*layer->WithRelu(), values, SumWithRelu);
  }
}

TEST(MakeAddTest, InputsMustHaveOneShape) {
  EXPECT_THAT(MakeAdd({}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(MakeAdd({{.shape = {2, 3}}, {.shape = {3, 2}}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr("[2, 3] and [3, 2]")));
  EXPECT_THAT(MakeAdd({{.kind = LayerInput::Kind::kIds}}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

INSTANTIATE_TEST_SUITE_P(Devices, AddTest, DevicesUnderTest(), DeviceName);

}  // namespace
}  // namespace parasol
