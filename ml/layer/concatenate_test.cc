#include "ml/layer/concatenate.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "base/status_matchers.h"
#include "gtest/gtest.h"
#include "ml/layer/testing/layer_fixture.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

// Concatenates tensors [examples, before, axis, after], element by element.
std::vector<double> Reference(const LayerValues& values,
                              const std::vector<Shape>& shapes, size_t axis) {
  const absl::Span<const int64_t> first(shapes[0]);
  const int64_t before = values.examples * ElementsOf(first.first(axis));
  const int64_t after = ElementsOf(first.subspan(axis + 1));
  std::vector<double> y;
  for (int64_t b = 0; b < before; ++b) {
    for (size_t input = 0; input < shapes.size(); ++input) {
      for (int64_t i = 0; i < shapes[input][axis] * after; ++i) {
        y.push_back(values.inputs[input][b * shapes[input][axis] * after + i]);
      }
    }
  }
  return y;
}

job::Concatenate Along(int64_t axis) {
  job::Concatenate spec;
  spec.set_axis(axis);
  return spec;
}

class ConcatenateTest : public LayerTest {};

TEST_P(ConcatenateTest, PutsInputsOneAfterAnotherAlongAnAxis) {
  struct Case {
    int64_t axis;
    std::vector<Shape> shapes;
    Shape want;
  };
  const Case cases[] = {
      {0, {{3}, {1}, {4}}, {8}},
      {-1, {{2, 3}, {2, 1}}, {2, 4}},
      {0, {{2, 3, 5}, {4, 3, 5}}, {6, 3, 5}},
      {1, {{2, 3, 5}, {2, 1, 5}, {2, 2, 5}}, {2, 6, 5}},
      {2, {{2, 3, 5}}, {2, 3, 5}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(absl::StrJoin(c.want, ", "));
    std::vector<LayerInput> inputs;
    for (const Shape& shape : c.shapes) inputs.push_back({.shape = shape});
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> layer,
                         MakeConcatenate(Along(c.axis), inputs));
    EXPECT_EQ(layer->output_shape(), c.want);
    const size_t axis = c.axis < 0 ? c.want.size() - 1 : c.axis;
    CheckLayer(
        *layer, RandomLayerValues(*layer, inputs, 3),
        [&](const LayerValues& v) { return Reference(v, c.shapes, axis); });
  }
}

TEST(MakeConcatenateTest, OtherAxesMustBeEqual) {
  const auto make = [](int64_t axis, std::vector<Shape> shapes) {
    std::vector<LayerInput> inputs;
    for (const Shape& shape : shapes) inputs.push_back({.shape = shape});
    return MakeConcatenate(Along(axis), inputs).status();
  };
  const auto is_invalid = StatusIs(absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(make(0, {{2, 3}, {2, 4}}), is_invalid);
  EXPECT_THAT(make(1, {{2, 3}, {3, 3}}), is_invalid);
  EXPECT_THAT(make(1, {{2, 3}, {2}}), is_invalid);
  EXPECT_THAT(make(2, {{2, 3}}), is_invalid);
  EXPECT_THAT(make(-2, {{2, 3}}), is_invalid);
  EXPECT_THAT(make(-1, {{}}), is_invalid);
  EXPECT_THAT(make(0, {}), is_invalid);
}

INSTANTIATE_TEST_SUITE_P(Devices, ConcatenateTest, DevicesUnderTest(),
                         DeviceName);

}  // namespace
}  // namespace parasol
