#include "ml/layer/interaction/dot_interaction.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_join.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/layer/testing/layer_fixture.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

job::DotInteraction Spec(bool self_interaction) {
  job::DotInteraction spec;
  spec.set_self_interaction(self_interaction);
  return spec;
}

// x[f] · x[g] for f = 0, 1, …, and g below f or up to f.
std::vector<double> Products(const LayerValues& values, const Shape& shape,
                             bool self_interaction) {
  std::vector<double> y;
  for (int64_t i = 0; i < values.examples; ++i) {
    const double* const x = &values.inputs[0][i * shape[0] * shape[1]];
    for (int64_t f = 0; f < shape[0]; ++f) {
      for (int64_t g = 0; g < f + (self_interaction ? 1 : 0); ++g) {
        double sum = 0;
        for (int64_t k = 0; k < shape[1]; ++k) {
          sum += x[f * shape[1] + k] * x[g * shape[1] + k];
        }
        y.push_back(sum);
      }
    }
  }
  return y;
}

class DotInteractionTest : public LayerTest {};

TEST_P(DotInteractionTest, IsTheLowerTriangleOfProducts) {
  const Shape shapes[] = {{2, 1}, {3, 1}, {2, 16}, {5, 7}, {3, 65}, {27, 4}};
  for (const Shape& shape : shapes) {
    for (const bool self_interaction : {false, true}) {
      SCOPED_TRACE(absl::StrJoin(shape, ", "));
      const std::vector<LayerInput> inputs = {{.shape = shape}};
      ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> layer,
                           MakeDotInteraction(Spec(self_interaction), inputs));
      const int64_t pairs =
          shape[0] * (shape[0] + (self_interaction ? 1 : -1)) / 2;
      EXPECT_EQ(layer->output_shape(), Shape({pairs}));
      CheckLayer(*layer, RandomLayerValues(*layer, inputs, 3),
                 [&](const LayerValues& v) {
                   return Products(v, shape, self_interaction);
                 });
    }
  }
}

TEST(MakeDotInteractionTest, TakesFieldsOfOneWidth) {
  const auto is_invalid = StatusIs(absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(MakeDotInteraction(Spec(false), {{.shape = {3}}}), is_invalid);
  EXPECT_THAT(MakeDotInteraction(Spec(false), {{.shape = {3, 2, 2}}}),
              is_invalid);
  EXPECT_THAT(MakeDotInteraction(Spec(false), {{.shape = {1, 8}}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr("1 fields")));
  EXPECT_OK(MakeDotInteraction(Spec(true), {{.shape = {1, 8}}}));
}

INSTANTIATE_TEST_SUITE_P(Devices, DotInteractionTest, DevicesUnderTest(),
                         DeviceName);

}  // namespace
}  // namespace parasol
