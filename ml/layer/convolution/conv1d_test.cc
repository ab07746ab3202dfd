#include "ml/layer/convolution/conv1d.h"

#include <algorithm>
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

job::Conv1D Conv1DSpec(const std::string& text) {
  job::Conv1D spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &spec));
  return spec;
}

struct StepCase {
  std::string spec;
  Shape input;
  Shape output;
  // The first window's first step, and the steps between its elements.
  int64_t first = 0;
  int64_t dilation = 1;
};

const StepCase kStepCases[] = {
    {"filters: 4 kernel_size: 3", {9, 3}, {7, 4}},
    {"filters: 4 kernel_size: 3 stride: 2 padding: SAME", {9, 3}, {5, 4}, -1},
    {"filters: 2 kernel_size: 4 padding: SAME use_bias: false",
     {5, 1},
     {5, 2},
     -1},
    {"filters: 5 kernel_size: 3 padding: CAUSAL", {6, 2}, {6, 5}, -2},
    {"filters: 3 kernel_size: 2 padding: CAUSAL dilation_rate: 4",
     {10, 3},
     {10, 3},
     -4,
     4},
    {"filters: 3 kernel_size: 3 dilation_rate: 2", {9, 2}, {5, 3}, 0, 2},
    {"filters: 3 kernel_size: 3 padding: CAUSAL stride: 2", {6, 2}, {3, 3}, -2},
    {"filters: 3 kernel_size: 1", {4, 2}, {4, 3}},
};

std::vector<double> Conv1DReference(const LayerValues& v, const StepCase& c,
                                    int64_t size, int64_t stride) {
  const int64_t steps = c.input[0], channels = c.input[1];
  const int64_t outputs = c.output[0], filters = c.output[1];
  std::vector<double> y;
  for (int64_t at = 0; at < v.examples * outputs; ++at) {
    for (int64_t f = 0; f < filters; ++f) {
      double sum = v.variables.size() > 1 ? v.variables[1][f] : 0;
      for (int64_t k = 0; k < size; ++k) {
        const int64_t step = at % outputs * stride + k * c.dilation + c.first;
        if (step < 0 || step >= steps) continue;
        for (int64_t i = 0; i < channels; ++i) {
          sum += v.inputs[0][(at / outputs * steps + step) * channels + i] *
                 v.variables[0][(k * channels + i) * filters + f];
        }
      }
      y.push_back(sum);
    }
  }
  return y;
}

class Conv1DTest : public LayerTest {};

TEST_P(Conv1DTest, IsTheReference) {
  for (const StepCase& c : kStepCases) {
    for (const bool relu : {false, true}) {
      SCOPED_TRACE(c.spec);
      job::Conv1D spec = Conv1DSpec(c.spec);
      if (relu) spec.set_activation(job::RELU);
      const std::vector<LayerInput> inputs = {{.shape = c.input}};
      ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> layer,
                           MakeConv1D(spec, inputs));
      EXPECT_EQ(layer->output_shape(), c.output);
      const int64_t stride = spec.has_stride() ? spec.stride() : 1;
      CheckLayer(*layer, RandomLayerValues(*layer, inputs, 2),
                 [&](const LayerValues& v) {
                   std::vector<double> y =
                       Conv1DReference(v, c, spec.kernel_size(), stride);
                   for (double& x : y) x = relu ? std::max(x, 0.0) : x;
                   return y;
                 });
    }
  }
}

TEST(MakeConv1DTest, VariablesAreKerass) {
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<const Layer> layer,
      MakeConv1D(Conv1DSpec("filters: 4 kernel_size: 3 dilation_rate: 2"),
                 {{.shape = {9, 5}}}));
  ASSERT_EQ(layer->variables().size(), 2);
  EXPECT_EQ(layer->variables()[0].name, "kernel");
  EXPECT_EQ(layer->variables()[0].shape, (Shape{3, 5, 4}));
  EXPECT_TRUE(layer->variables()[0].initializer.has_glorot_uniform());
  EXPECT_EQ(layer->variables()[1].name, "bias");
}

TEST(MakeConv1DTest, WhatDoesNotFitIsNamed) {
  EXPECT_THAT(MakeConv1D(Conv1DSpec("filters: 4 kernel_size: 3"),
                         {{.shape = {9, 5, 1}}})
                  .status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("needs [steps, channels], not [9, 5, 1]")));
  EXPECT_THAT(
      MakeConv1D(Conv1DSpec("filters: 4 kernel_size: 3 dilation_rate: 5"),
                 {{.shape = {9, 5}}})
          .status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("a window of 11 steps does not fit into 9")));
  EXPECT_THAT(
      MakeConv1D(Conv1DSpec("filters: 4 kernel_size: 0"), {{.shape = {9, 5}}})
          .status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is 0, not")));
}

INSTANTIATE_TEST_SUITE_P(Devices, Conv1DTest, DevicesUnderTest(), DeviceName);

}  // namespace
}  // namespace parasol
