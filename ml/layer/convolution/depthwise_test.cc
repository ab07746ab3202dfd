#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ml/layer/convolution/depthwise_conv2d.h"
#include "ml/layer/convolution/separable_conv2d.h"
#include "ml/layer/testing/layer_fixture.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;
using Numbers = std::vector<double>;

// One axis: its windows' elements lie `dilation` pixels apart.
struct TestAxis {
  int64_t input, output, elements, stride = 1, first = 0, dilation = 1;
};

struct DepthwiseCase {
  std::string spec;
  TestAxis height;
  TestAxis width;
  int64_t channels;
  int64_t multiplier = 1;
};

const DepthwiseCase kDepthwiseCases[] = {
    {"kernel_size: 3", {6, 4, 3}, {5, 3, 3}, 4},
    {"kernel_size: 3 padding: SAME depth_multiplier: 2",
     {6, 6, 3, 1, -1},
     {5, 5, 3, 1, -1},
     3,
     2},
    {"kernel_size: [2, 3] stride: 2 padding: SAME",
     {6, 3, 2, 2, 0},
     {5, 3, 3, 2, -1},
     2},
    {"kernel_size: 2 dilation_rate: [2, 3]",
     {6, 4, 2, 1, 0, 2},
     {5, 2, 2, 1, 0, 3},
     3},
    {"kernel_size: 3 dilation_rate: 2 padding: SAME depth_multiplier: 3",
     {4, 4, 3, 1, -2, 2},
     {5, 5, 3, 1, -2, 2},
     1,
     3},
};

Numbers DepthwiseReference(const DepthwiseCase& c, int64_t examples,
                           const Numbers& x, const Numbers& w,
                           const Numbers& bias) {
  const int64_t filters = c.channels * c.multiplier;
  Numbers y;
  for (int64_t n = 0; n < examples; ++n) {
    for (int64_t at = 0; at < c.height.output * c.width.output; ++at) {
      for (int64_t q = 0; q < filters; ++q) {
        double sum = bias.empty() ? 0 : bias[q];
        for (int64_t e = 0; e < c.height.elements * c.width.elements; ++e) {
          const int64_t i = at / c.width.output * c.height.stride +
                            e / c.width.elements * c.height.dilation +
                            c.height.first;
          const int64_t j = at % c.width.output * c.width.stride +
                            e % c.width.elements * c.width.dilation +
                            c.width.first;
          if (i < 0 || i >= c.height.input) continue;
          if (j < 0 || j >= c.width.input) continue;
          sum += x[((n * c.height.input + i) * c.width.input + j) * c.channels +
                   q / c.multiplier] *
                 w[e * filters + q];
        }
        y.push_back(sum);
      }
    }
  }
  return y;
}

class DepthwiseConv2DTest : public LayerTest {};

TEST_P(DepthwiseConv2DTest, IsTheReference) {
  for (const DepthwiseCase& c : kDepthwiseCases) {
    for (const bool has_bias : {true, false}) {
      SCOPED_TRACE(c.spec);
      job::DepthwiseConv2D spec;
      ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(c.spec, &spec));
      spec.set_use_bias(has_bias);
      const std::vector<LayerInput> inputs = {
          {.shape = {c.height.input, c.width.input, c.channels}}};
      ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> layer,
                           MakeDepthwiseConv2D(spec, inputs));
      EXPECT_EQ(layer->output_shape(), (Shape{c.height.output, c.width.output,
                                              c.channels * c.multiplier}));
      CheckLayer(*layer, RandomLayerValues(*layer, inputs, 2),
                 [&](const LayerValues& v) {
                   return DepthwiseReference(
                       c, v.examples, v.inputs[0], v.variables[0],
                       has_bias ? v.variables[1] : Numbers());
                 });
    }
  }
}

TEST_P(DepthwiseConv2DTest, AReluIsComputedByTheLayer) {
  const DepthwiseCase& c = kDepthwiseCases[1];
  job::DepthwiseConv2D spec;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(c.spec, &spec));
  spec.set_activation(job::RELU);
  const std::vector<LayerInput> inputs = {{.shape = {6, 5, 3}}};
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> layer,
                       MakeDepthwiseConv2D(spec, inputs));
  CheckLayer(*layer, RandomLayerValues(*layer, inputs, 2),
             [&](const LayerValues& v) {
               Numbers y = DepthwiseReference(c, v.examples, v.inputs[0],
                                              v.variables[0], v.variables[1]);
               for (double& value : y) value = value > 0 ? value : 0;
               return y;
             });
}

class SeparableConv2DTest : public LayerTest {};

TEST_P(SeparableConv2DTest, IsAProductAfterTheDepthwiseConvolution) {
  constexpr int64_t kFilters = 5;
  for (const DepthwiseCase& c : kDepthwiseCases) {
    for (const bool relu : {true, false}) {
      SCOPED_TRACE(c.spec);
      job::SeparableConv2D spec;
      ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(c.spec, &spec));
      spec.set_filters(kFilters);
      if (relu) spec.set_activation(job::RELU);
      const std::vector<LayerInput> inputs = {
          {.shape = {c.height.input, c.width.input, c.channels}}};
      ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> layer,
                           MakeSeparableConv2D(spec, inputs));
      CheckLayer(*layer, RandomLayerValues(*layer, inputs, 2),
                 [&](const LayerValues& v) {
                   const Numbers inner = DepthwiseReference(
                       c, v.examples, v.inputs[0], v.variables[0], {});
                   const int64_t width = c.channels * c.multiplier;
                   Numbers y;
                   for (size_t at = 0; at < inner.size(); at += width) {
                     for (int64_t f = 0; f < kFilters; ++f) {
                       double sum = v.variables[2][f];
                       for (int64_t i = 0; i < width; ++i) {
                         sum +=
                             inner[at + i] * v.variables[1][i * kFilters + f];
                       }
                       y.push_back(relu && sum < 0 ? 0 : sum);
                     }
                   }
                   return y;
                 });
    }
  }
}

TEST(MakeSeparableConv2DTest, VariablesAreKerass) {
  job::SeparableConv2D spec;
  spec.set_filters(5);
  spec.add_kernel_size(3);
  spec.set_depth_multiplier(2);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> layer,
                       MakeSeparableConv2D(spec, {{.shape = {6, 5, 3}}}));
  ASSERT_EQ(layer->variables().size(), 3);
  EXPECT_EQ(layer->variables()[0].name, "depthwise_kernel");
  EXPECT_EQ(layer->variables()[0].shape, (Shape{3, 3, 3, 2}));
  EXPECT_EQ(layer->variables()[1].name, "pointwise_kernel");
  EXPECT_EQ(layer->variables()[1].shape, (Shape{1, 1, 6, 5}));
  EXPECT_EQ(layer->variables()[2].name, "bias");
}

TEST(MakeDepthwiseConv2DTest, WhatDoesNotFitIsNamed) {
  job::DepthwiseConv2D spec;
  spec.add_kernel_size(3);
  EXPECT_THAT(
      MakeDepthwiseConv2D(spec, {{.shape = {6, 5}}}).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("needs images")));
  spec.add_dilation_rate(3);
  EXPECT_THAT(MakeDepthwiseConv2D(spec, {{.shape = {6, 5, 1}}}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("a window of 7x7 does not fit")));
  EXPECT_THAT(MakeDepthwiseConv2D({}, {{.shape = {6, 5, 1}}}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

INSTANTIATE_TEST_SUITE_P(Devices, DepthwiseConv2DTest, DevicesUnderTest(),
                         DeviceName);
INSTANTIATE_TEST_SUITE_P(Devices, SeparableConv2DTest, DevicesUnderTest(),
                         DeviceName);

}  // namespace
}  // namespace parasol
