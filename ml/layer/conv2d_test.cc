#include "ml/layer/conv2d.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ml/kernel/testing/reference_image.h"
#include "ml/layer/image_window.h"
#include "ml/layer/testing/layer_fixture.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

job::Conv2D Spec(const std::string& text) {
  job::Conv2D spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &spec));
  return spec;
}

struct Case {
  std::string spec;
  Shape image;
  int64_t examples;
  Shape output;
};

const Case kCases[] = {
    {"filters: 6 kernel_size: 5 padding: SAME", {9, 9, 1}, 2, {9, 9, 6}},
    {"filters: 16 kernel_size: 3", {6, 7, 6}, 2, {4, 5, 16}},
    {"filters: 4 kernel_size: 3 stride: 2 padding: SAME",
     {8, 7, 3},
     1,
     {4, 4, 4}},
    {"filters: 5 kernel_size: 1 stride: 2 use_bias: false",
     {6, 5, 4},
     3,
     {3, 3, 5}},
    {"filters: 2 kernel_size: [2, 4] stride: [3, 1] padding: SAME",
     {7, 5, 2},
     2,
     {3, 5, 2}},
};

// Returns the specification of the layer of a case.
LayerReference ReferenceOf(const Case& c) {
  return [&c](const LayerValues& values) {
    const job::Conv2D spec = Spec(c.spec);
    const int64_t one[] = {1};
    const ImageWindow window = *FitImageWindow(
        c.image, spec.kernel_size(),
        spec.stride().empty() ? one : absl::MakeConstSpan(spec.stride()),
        spec.padding());
    return reference::Convolution({values.examples, window.height, window.width,
                                   window.channels, spec.filters()},
                                  values.inputs[0], values.variables[0],
                                  values.variables.size() > 1
                                      ? values.variables[1]
                                      : std::vector<double>());
  };
}

class Conv2DTest : public LayerTest {};

TEST_P(Conv2DTest, IsTheReferenceWithAndWithoutRelu) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.spec);
    const std::vector<LayerInput> inputs = {{.shape = c.image}};
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> layer,
                         MakeConv2D(Spec(c.spec), inputs));
    EXPECT_EQ(layer->output_shape(), c.output);
    const LayerValues values = RandomLayerValues(*layer, inputs, c.examples);
    const LayerReference reference = ReferenceOf(c);
    CheckLayer(*layer, values, reference);
    CheckLayer(*layer->WithRelu(), values, [&](const LayerValues& v) {
      std::vector<double> y = reference(v);
      for (double& value : y) value = std::max(value, 0.0);
      return y;
    });
  }
}

TEST_P(Conv2DTest, AnyActivationIsAppliedToTheOutput) {
  const Case c = {"filters: 3 kernel_size: 2", {4, 5, 2}, 2, {3, 4, 3}};
  const std::vector<LayerInput> inputs = {{.shape = c.image}};
  job::Conv2D spec = Spec(c.spec);
  spec.set_activation(job::TANH);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> layer,
                       MakeConv2D(spec, inputs));
  EXPECT_EQ(layer->output_shape(), c.output);
  CheckLayer(*layer, RandomLayerValues(*layer, inputs, c.examples),
             [&](const LayerValues& v) {
               std::vector<double> y = ReferenceOf(c)(v);
               for (double& value : y) value = std::tanh(value);
               return y;
             });
}

TEST(MakeConv2DTest, VariablesAreKernelAndBiasWithTheirL2) {
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<const Layer> layer,
      MakeConv2D(Spec("filters: 8 kernel_size: [3, 5] kernel_l2: .5"),
                 {{.shape = {9, 9, 4}}}));
  ASSERT_EQ(layer->variables().size(), 2);
  EXPECT_EQ(layer->variables()[0].name, "kernel");
  EXPECT_THAT(layer->variables()[0].shape, ElementsAre(3, 5, 4, 8));
  EXPECT_TRUE(layer->variables()[0].initializer.has_glorot_uniform());
  EXPECT_EQ(layer->variables()[1].name, "bias");
  EXPECT_THAT(layer->variables()[1].shape, ElementsAre(8));
  EXPECT_TRUE(layer->variables()[1].initializer.has_zeros());
  EXPECT_THAT(layer->variable_l2(), ElementsAre(.5, 0));
}

TEST(MakeConv2DTest, WhatDoesNotFitIsSaid) {
  struct Rejected {
    std::string spec;
    Shape image;
    std::string words;
  };
  const Rejected cases[] = {
      {"filters: 8 kernel_size: 3", {28, 28}, "[28, 28]"},
      {"filters: 8 kernel_size: 3", {2, 9, 1}, "3x3 does not fit"},
      {"filters: 8", {9, 9, 1}, "size is []"},
      {"filters: 8 kernel_size: [3, 3, 3]", {9, 9, 1}, "[3, 3, 3]"},
      {"filters: 8 kernel_size: 0", {9, 9, 1}, "is 0"},
      {"filters: 8 kernel_size: 3 stride: -1", {9, 9, 1}, "stride is -1"},
      {"kernel_size: 3", {9, 9, 1}, "0 filters"},
      {"filters: 1000000000 kernel_size: 3", {9, 9, 1}, "1000000000 filters"},
  };
  for (const Rejected& c : cases) {
    SCOPED_TRACE(c.spec);
    EXPECT_THAT(
        MakeConv2D(Spec(c.spec), {{.shape = c.image}}),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.words)));
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Conv2DTest, DevicesUnderTest(), DeviceName);

}  // namespace
}  // namespace parasol
