#include "ml/layer/interaction/cross.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/layer/testing/layer_fixture.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

struct Case {
  int64_t width;
  int64_t rank;
  bool has_bias;
  bool one_input;
};

job::Cross SpecOf(const Case& c) {
  job::Cross spec;
  spec.set_projection_dim(c.rank);
  spec.set_use_bias(c.has_bias);
  return spec;
}

// x [1, rows] times matrix [rows, columns].
std::vector<double> Times(const double* x, const std::vector<double>& matrix,
                          int64_t rows, int64_t columns) {
  std::vector<double> y(columns);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j)
      y[j] += x[i] * matrix[i * columns + j];
  }
  return y;
}

std::vector<double> Cross(const LayerValues& values, const Case& c) {
  std::vector<double> y;
  for (int64_t example = 0; example < values.examples; ++example) {
    const double* const x0 = &values.inputs[0][example * c.width];
    const double* const x = &values.inputs.back()[example * c.width];
    std::vector<double> inner;
    if (c.rank > 0) {
      inner = Times(x, values.variables[0], c.width, c.rank);
      inner = Times(inner.data(), values.variables[1], c.rank, c.width);
    } else {
      inner = Times(x, values.variables[0], c.width, c.width);
    }
    for (int64_t i = 0; i < c.width; ++i) {
      const double bias = c.has_bias ? values.variables.back()[i] : 0;
      y.push_back(x0[i] * (inner[i] + bias) + x[i]);
    }
  }
  return y;
}

class CrossTest : public LayerTest {};

TEST_P(CrossTest, IsTheReference) {
  const Case cases[] = {{5, 0, true, false},  {5, 0, false, true},
                        {7, 2, true, false},  {7, 2, true, true},
                        {33, 7, false, true}, {1, 1, true, false},
                        {40, 0, true, true}};
  for (const Case& c : cases) {
    SCOPED_TRACE(absl::StrCat(c.width, " ", c.rank, " ", c.one_input));
    const std::vector<LayerInput> inputs(c.one_input ? 1 : 2,
                                         {.shape = {c.width}});
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> layer,
                         MakeCross(SpecOf(c), inputs));
    CheckLayer(*layer, RandomLayerValues(*layer, inputs, 3),
               [&](const LayerValues& v) { return Cross(v, c); });
  }
}

TEST(MakeCrossTest, VariablesHaveTheNamesOfTensorFlowRecommenders) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> layer,
                       MakeCross(SpecOf({8, 3, true, true}), {{.shape = {8}}}));
  ASSERT_EQ(layer->variables().size(), 3);
  EXPECT_EQ(layer->variables()[0].name, "u_kernel");
  EXPECT_EQ(layer->variables()[0].shape, Shape({8, 3}));
  EXPECT_EQ(layer->variables()[1].name, "kernel");
  EXPECT_EQ(layer->variables()[1].shape, Shape({3, 8}));
  EXPECT_EQ(layer->variables()[2].name, "bias");
}

TEST(MakeCrossTest, WhatDoesNotFitIsNamed) {
  const auto is = [](const char* what) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what));
  };
  const job::Cross spec;
  EXPECT_THAT(MakeCross(spec, {{.shape = {2, 3}}}), is("flat inputs"));
  EXPECT_THAT(MakeCross(spec, {{.shape = {2}}, {.shape = {3}}}),
              is("[2] and [3]"));
  EXPECT_THAT(MakeCross(spec, {{.shape = {2}}, {.shape = {2}}, {.shape = {2}}}),
              is("not 3 inputs"));
  EXPECT_THAT(MakeCross(SpecOf({2, 3, true, true}), {{.shape = {2}}}),
              is("projection_dim is 3"));
}

INSTANTIATE_TEST_SUITE_P(Devices, CrossTest, DevicesUnderTest(), DeviceName);

}  // namespace
}  // namespace parasol
