#include "ml/layer/reshape.h"

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

job::Reshape To(const std::vector<int64_t>& shape) {
  job::Reshape spec;
  spec.mutable_shape()->Add(shape.begin(), shape.end());
  return spec;
}

TEST(ReshapeTest, IsAViewOfTheShape) {
  const std::vector<LayerInput> inputs = {{.shape = {4, 6}}};
  const std::vector<std::pair<std::vector<int64_t>, Shape>> cases = {
      {{24}, {24}},
      {{2, 3, 4}, {2, 3, 4}},
      {{-1}, {24}},
      {{3, -1}, {3, 8}},
      {{-1, 1, 12}, {2, 1, 12}}};
  for (const auto& [shape, want] : cases) {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> layer,
                         MakeReshape(To(shape), inputs));
    EXPECT_TRUE(layer->IsView());
    EXPECT_EQ(layer->output_shape(), want);
  }
}

TEST(ReshapeTest, WhatDoesNotFitIsNamed) {
  const std::vector<LayerInput> inputs = {{.shape = {4, 6}}};
  const std::vector<std::pair<std::vector<int64_t>, const char*>> cases = {
      {{5, 5}, "[4, 6] does not have the elements of [5, 5]"},
      {{5, -1}, "[4, 6] does not have the elements of [5, -1]"},
      {{48, -1}, "does not have the elements"},
      {{-1, -1}, "more than one axis of -1"},
      {{0}, "[0] has an axis below 1"},
      {{1 << 16, 1 << 16}, "more than 2147483647 elements"},
      {{}, "shape"}};
  for (const auto& [shape, want] : cases) {
    EXPECT_THAT(MakeReshape(To(shape), inputs),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(want)));
  }
  EXPECT_THAT(MakeReshape(To({1}), {{.kind = LayerInput::Kind::kIds}}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace parasol
