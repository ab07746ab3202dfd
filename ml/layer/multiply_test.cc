#include "ml/layer/multiply.h"

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

std::vector<double> Product(const LayerValues& values) {
  std::vector<double> y(values.inputs[0].size(), 1);
  for (const std::vector<double>& x : values.inputs) {
    for (size_t i = 0; i < y.size(); ++i) y[i] *= x[i];
  }
  return y;
}

class MultiplyTest : public LayerTest {};

TEST_P(MultiplyTest, IsTheProductOfItsInputs) {
  for (const size_t count : {2, 3, 5}) {
    SCOPED_TRACE(count);
    const std::vector<LayerInput> inputs(count, {.shape = {2, 3, 7}});
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> layer,
                         MakeMultiply(inputs));
    CheckLayer(*layer, RandomLayerValues(*layer, inputs, 3), Product);
  }
}

// No quotient of the output would give the gradient.
TEST_P(MultiplyTest, AFactorMayBeZero) {
  const std::vector<LayerInput> inputs(3, {.shape = {40}});
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> layer,
                       MakeMultiply(inputs));
  LayerValues values = RandomLayerValues(*layer, inputs, 2);
  values.inputs[0].assign(values.inputs[0].size(), 0);
  CheckLayer(*layer, values, Product);
}

TEST(MakeMultiplyTest, NeedsTwoInputsOfOneShape) {
  EXPECT_THAT(MakeMultiply({}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(MakeMultiply({{.shape = {2}}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr("two inputs or more")));
  EXPECT_THAT(MakeMultiply({{.shape = {2, 3}}, {.shape = {3, 2}}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr("[2, 3] and [3, 2]")));
}

INSTANTIATE_TEST_SUITE_P(Devices, MultiplyTest, DevicesUnderTest(), DeviceName);

}  // namespace
}  // namespace parasol
