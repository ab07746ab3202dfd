#include "ml/layer/pool.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ml/kernel/testing/reference_image.h"
#include "ml/layer/testing/layer_fixture.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Kind = PoolingShape::Kind;

constexpr auto kSame = WindowPadding::kSame;
constexpr auto kValid = WindowPadding::kValid;

job::Pool Spec(const std::string& text) {
  job::Pool spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &spec));
  return spec;
}

LayerReference ReferenceOf(const PoolingShape& shape) {
  return [shape](const LayerValues& values) {
    return reference::Pooling(shape, values.inputs[0]);
  };
}

class PoolTest : public LayerTest {};

TEST_P(PoolTest, MaxAndAverageAreTheReference) {
  struct Case {
    std::string spec;
    WindowAxis height, width;
  };
  const Case cases[] = {
      {"pool_size: 2", FitWindow(7, 2, 2, kValid), FitWindow(6, 2, 2, kValid)},
      {"pool_size: 3 stride: 2 padding: SAME", FitWindow(7, 3, 2, kSame),
       FitWindow(6, 3, 2, kSame)},
      {"pool_size: [2, 3] stride: [1, 2]", FitWindow(7, 2, 1, kValid),
       FitWindow(6, 3, 2, kValid)},
  };
  const std::vector<LayerInput> inputs = {{.shape = {7, 6, 5}}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.spec);
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> max,
                         MakeMaxPool(Spec(c.spec), inputs));
    EXPECT_THAT(max->output_shape(),
                ElementsAre(c.height.output, c.width.output, 5));
    const LayerValues values = RandomLayerValues(*max, inputs, 2);
    CheckLayer(*max, values,
               ReferenceOf({Kind::kMax, 2, c.height, c.width, 5}));
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> average,
                         MakeAveragePool(Spec(c.spec), inputs));
    CheckLayer(*average, values,
               ReferenceOf({Kind::kAverage, 2, c.height, c.width, 5}));
  }
}

TEST_P(PoolTest, GlobalAverageIsTheMeanOfEachChannel) {
  const std::vector<LayerInput> inputs = {{.shape = {4, 6, 5}}};
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> layer,
                       MakeGlobalAveragePool(inputs));
  EXPECT_THAT(layer->output_shape(), ElementsAre(5));
  CheckLayer(*layer, RandomLayerValues(*layer, inputs, 3),
             [](const LayerValues& values) {
               std::vector<double> y(3 * 5);
               for (size_t i = 0; i < values.inputs[0].size(); ++i) {
                 y[i / (24 * 5) * 5 + i % 5] += values.inputs[0][i] / 24;
               }
               return y;
             });
}

TEST(MakePoolTest, WhatIsNoImageOrDoesNotFitIsSaid) {
  EXPECT_THAT(MakeMaxPool(Spec("pool_size: 2"), {{.shape = {8}}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("[8]")));
  EXPECT_THAT(MakeAveragePool(Spec("pool_size: 9"), {{.shape = {8, 9, 1}}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("9x9 does not fit")));
  EXPECT_THAT(
      MakeGlobalAveragePool({{.shape = {8, 9}}}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("[8, 9]")));
}

TEST(MakePoolTest, AWindowThatIsNotSetIsTwoByTwo) {
  ASSERT_OK_AND_ASSIGN(const auto layer,
                       MakeMaxPool(Spec(""), {{.shape = {8, 9, 3}}}));
  EXPECT_EQ(layer->output_shape(), Shape({4, 4, 3}));
}

INSTANTIATE_TEST_SUITE_P(Devices, PoolTest, DevicesUnderTest(), DeviceName);

}  // namespace
}  // namespace parasol
