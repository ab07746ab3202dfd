#include "ml/layer/interaction/dot.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/layer/testing/layer_fixture.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

job::Dot Spec(bool normalize) {
  job::Dot spec;
  spec.set_normalize(normalize);
  return spec;
}

// Two inputs and the shape of what the layer makes of them.
struct Case {
  Shape a;
  Shape b;
  Shape y;
};

int64_t RowsOf(const Shape& shape) { return shape.size() == 1 ? 1 : shape[0]; }

double Product(const double* a, const double* b, int64_t width) {
  double sum = 0;
  for (int64_t k = 0; k < width; ++k) sum += a[k] * b[k];
  return sum;
}

std::vector<double> Products(const LayerValues& values, const Case& c,
                             bool normalize) {
  const int64_t width = c.a.back();
  std::vector<double> y;
  for (int64_t i = 0; i < values.examples; ++i) {
    for (int64_t n = 0; n < RowsOf(c.a); ++n) {
      const double* const a = &values.inputs[0][(i * RowsOf(c.a) + n) * width];
      for (int64_t m = 0; m < RowsOf(c.b); ++m) {
        const double* const b =
            &values.inputs[1][(i * RowsOf(c.b) + m) * width];
        double scale = 1;
        if (normalize) {
          scale = 1 / std::sqrt(std::max(Product(a, a, width), 1e-12) *
                                std::max(Product(b, b, width), 1e-12));
        }
        y.push_back(scale * Product(a, b, width));
      }
    }
  }
  return y;
}

class DotTest : public LayerTest {};

TEST_P(DotTest, IsTheProductsOfAllVectorsWithAll) {
  const Case cases[] = {{{3}, {3}, {1}},
                        {{33}, {33}, {1}},
                        {{2, 5}, {3, 5}, {2, 3}},
                        {{1, 16}, {4, 16}, {1, 4}},
                        {{7}, {4, 7}, {4}},
                        {{40, 3}, {3}, {40}},
                        {{2, 65}, {37, 65}, {2, 37}}};
  for (const Case& c : cases) {
    for (const bool normalize : {false, true}) {
      SCOPED_TRACE(absl::StrCat(absl::StrJoin(c.a, ", "), " and ",
                                absl::StrJoin(c.b, ", "), ", ", normalize));
      const std::vector<LayerInput> inputs = {{.shape = c.a}, {.shape = c.b}};
      ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> layer,
                           MakeDot(Spec(normalize), inputs));
      EXPECT_EQ(layer->output_shape(), c.y);
      CheckLayer(
          *layer, RandomLayerValues(*layer, inputs, 3),
          [&](const LayerValues& v) { return Products(v, c, normalize); });
    }
  }
}

// Golden numbers of tf.math.l2_normalize's formula: a vector whose sum of
// squares is below 1e-12 is multiplied by 1e6, and has this product's gradient.
TEST_P(DotTest, AShortVectorIsNotMadeLong) {
  const std::vector<LayerInput> inputs = {{.shape = {2}}, {.shape = {2}}};
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> layer,
                       MakeDot(Spec(true), inputs));
  const LayerValues values = {.examples = 2,
                              .inputs = {{0, 0, 2e-7, 0}, {3, 4, 3, 4}}};
  const LayerResults results = RunLayer(*layer, values, {1, 1});
  EXPECT_THAT(results.y,
              Pointwise(FloatNear(1e-6), std::vector<float>{0, 0.12f}));
  EXPECT_THAT(results.dx[0],
              Pointwise(FloatNear(1),
                        std::vector<float>{600000, 800000, 600000, 800000}));
  // 2e-7 · 1e6 / 5 · (1 - .6 · .6) and · (-.6 · .8).
  EXPECT_THAT(
      results.dx[1],
      Pointwise(FloatNear(1e-6), std::vector<float>{0, 0, 0.0256f, -0.0192f}));
}

TEST(MakeDotTest, TakesTwoInputsOfOneWidth) {
  const auto is_invalid = [](const char* message) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message));
  };
  EXPECT_THAT(MakeDot({}, {{.shape = {3}}}), is_invalid("two inputs, not 1"));
  EXPECT_THAT(MakeDot({}, {{.shape = {3}}, {.shape = {2, 4}}}),
              is_invalid("not [3] and [2, 4]"));
  EXPECT_THAT(MakeDot({}, {{.shape = {2, 2, 3}}, {.shape = {3}}}),
              is_invalid("not [2, 2, 3] and [3]"));
}

INSTANTIATE_TEST_SUITE_P(Devices, DotTest, DevicesUnderTest(), DeviceName);

}  // namespace
}  // namespace parasol
