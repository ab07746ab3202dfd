#include "ml/layer/interaction/factorization_machine.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_join.h"
#include "base/status_matchers.h"
#include "gtest/gtest.h"
#include "ml/layer/testing/layer_fixture.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

// Σ over pairs f < g of x[f] · x[g].
std::vector<double> Pairs(const LayerValues& values, int64_t fields,
                          int64_t width) {
  std::vector<double> y(values.examples);
  for (int64_t i = 0; i < values.examples; ++i) {
    const double* const x = &values.inputs[0][i * fields * width];
    for (int64_t f = 0; f < fields; ++f) {
      for (int64_t g = f + 1; g < fields; ++g) {
        for (int64_t k = 0; k < width; ++k) {
          y[i] += x[f * width + k] * x[g * width + k];
        }
      }
    }
  }
  return y;
}

class FactorizationMachineTest : public LayerTest {};

TEST_P(FactorizationMachineTest, IsTheSumOverAllPairsOfFields) {
  const Shape shapes[] = {{1, 1}, {3, 1}, {2, 16}, {5, 7}, {3, 65}, {2, 130}};
  for (const Shape& shape : shapes) {
    SCOPED_TRACE(absl::StrJoin(shape, ", "));
    const std::vector<LayerInput> inputs = {{.shape = shape}};
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> layer,
                         MakeFactorizationMachine(inputs));
    EXPECT_EQ(layer->output_shape(), Shape({1}));
    CheckLayer(
        *layer, RandomLayerValues(*layer, inputs, 3),
        [&](const LayerValues& v) { return Pairs(v, shape[0], shape[1]); });
  }
}

TEST(MakeFactorizationMachineTest, TakesFieldsOfOneWidth) {
  const auto is_invalid = StatusIs(absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(MakeFactorizationMachine({{.shape = {3}}}), is_invalid);
  EXPECT_THAT(MakeFactorizationMachine({{.shape = {3, 2, 2}}}), is_invalid);
}

INSTANTIATE_TEST_SUITE_P(Devices, FactorizationMachineTest, DevicesUnderTest(),
                         DeviceName);

}  // namespace
}  // namespace parasol
