#include "ml/layer/convolution/conv2d_transpose.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ml/layer/testing/layer_fixture.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

job::Conv2DTranspose TransposeSpec(const std::string& text) {
  job::Conv2DTranspose spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &spec));
  return spec;
}

struct TransposeCase {
  std::string spec;
  Shape input;
  Shape output;
  std::vector<int64_t> size;
  std::vector<int64_t> stride;
  // The output pixel of the first element of the first input pixel's window.
  std::vector<int64_t> first;
};

const TransposeCase kTransposeCases[] = {
    {"filters: 3 kernel_size: 3", {4, 5, 2}, {6, 7, 3}, {3, 3}, {1, 1}, {0, 0}},
    {"filters: 3 kernel_size: 3 stride: 2 padding: SAME",
     {4, 5, 2},
     {8, 10, 3},
     {3, 3},
     {2, 2},
     {0, 0}},
    {"filters: 1 kernel_size: 4 stride: 2 padding: SAME",
     {3, 2, 3},
     {6, 4, 1},
     {4, 4},
     {2, 2},
     {-1, -1}},
    {"filters: 2 kernel_size: [2, 3] stride: [3, 2] use_bias: false",
     {3, 2, 2},
     {9, 5, 2},
     {2, 3},
     {3, 2},
     {0, 0}},
    {"filters: 2 kernel_size: 5 padding: SAME",
     {4, 4, 1},
     {4, 4, 2},
     {5, 5},
     {1, 1},
     {-2, -2}},
};

// Each input pixel adds its window to the output.
std::vector<double> TransposeReference(const LayerValues& v,
                                       const TransposeCase& c) {
  const int64_t filters = c.output[2], channels = c.input[2];
  std::vector<double> y(v.examples * ElementsOf(c.output));
  for (size_t i = 0; i < y.size() && v.variables.size() > 1; ++i) {
    y[i] = v.variables[1][i % filters];
  }
  for (int64_t at = 0; at < v.examples * c.input[0] * c.input[1]; ++at) {
    const int64_t n = at / c.input[1] / c.input[0];
    for (int64_t e = 0; e < c.size[0] * c.size[1]; ++e) {
      const int64_t i = at / c.input[1] % c.input[0] * c.stride[0] +
                        e / c.size[1] + c.first[0];
      const int64_t j =
          at % c.input[1] * c.stride[1] + e % c.size[1] + c.first[1];
      if (i < 0 || i >= c.output[0] || j < 0 || j >= c.output[1]) continue;
      for (int64_t f = 0; f < filters; ++f) {
        for (int64_t k = 0; k < channels; ++k) {
          y[((n * c.output[0] + i) * c.output[1] + j) * filters + f] +=
              v.inputs[0][at * channels + k] *
              v.variables[0][(e * filters + f) * channels + k];
        }
      }
    }
  }
  return y;
}

class Conv2DTransposeTest : public LayerTest {};

TEST_P(Conv2DTransposeTest, IsTheReference) {
  for (const TransposeCase& c : kTransposeCases) {
    for (const bool relu : {false, true}) {
      SCOPED_TRACE(c.spec);
      job::Conv2DTranspose spec = TransposeSpec(c.spec);
      if (relu) spec.set_activation(job::RELU);
      const std::vector<LayerInput> inputs = {{.shape = c.input}};
      ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> layer,
                           MakeConv2DTranspose(spec, inputs));
      ASSERT_EQ(layer->output_shape(), c.output);
      CheckLayer(*layer, RandomLayerValues(*layer, inputs, 2),
                 [&](const LayerValues& v) {
                   std::vector<double> y = TransposeReference(v, c);
                   for (double& x : y) x = relu && x < 0 ? 0 : x;
                   return y;
                 });
    }
  }
}

TEST(MakeConv2DTransposeTest, VariablesAreKerass) {
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<const Layer> layer,
      MakeConv2DTranspose(TransposeSpec("filters: 4 kernel_size: [3, 2]"),
                          {{.shape = {9, 5, 6}}}));
  ASSERT_EQ(layer->variables().size(), 2);
  EXPECT_EQ(layer->variables()[0].name, "kernel");
  EXPECT_EQ(layer->variables()[0].shape, (Shape{3, 2, 4, 6}));
  EXPECT_EQ(layer->variables()[1].name, "bias");
}

TEST(MakeConv2DTransposeTest, WhatDoesNotFitIsNamed) {
  EXPECT_THAT(
      MakeConv2DTranspose(TransposeSpec("filters: 4 kernel_size: 3"),
                          {{.shape = {9, 5}}})
          .status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("needs images")));
  EXPECT_THAT(
      MakeConv2DTranspose(
          TransposeSpec("filters: 1000 kernel_size: 3 stride: 32768"),
          {{.shape = {9, 5, 1}}})
          .status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("together")));
  EXPECT_THAT(
      MakeConv2DTranspose(
          TransposeSpec("filters: 1 kernel_size: 3 padding: CAUSAL"),
          {{.shape = {9, 5, 1}}})
          .status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("CAUSAL")));
}

INSTANTIATE_TEST_SUITE_P(Devices, Conv2DTransposeTest, DevicesUnderTest(),
                         DeviceName);

}  // namespace
}  // namespace parasol
