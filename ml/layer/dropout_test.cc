#include "ml/layer/dropout.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gtest/gtest.h"
#include "ml/initializer/philox.h"
#include "ml/layer/testing/layer_fixture.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

bool IsDropped(double rate, uint64_t seed, uint64_t i) {
  const uint64_t counter = i / 64 * 16 + i % 16;
  const PhiloxCounter random = Philox4x32(
      {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0,
       0},
      {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  return random[i / 16 % 4] < rate * 0x1p32;
}

class DropoutLayerTest : public LayerTest {};

TEST_P(DropoutLayerTest, DropsInTrainingOnly) {
  for (double rate : {0.25, 0.9}) {
    const std::vector<LayerInput> inputs = {{.shape = {7, 19}}};
    job::Dropout spec;
    spec.set_rate(rate);
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> layer,
                         MakeDropout(spec, inputs));
    LayerValues values = RandomLayerValues(*layer, inputs, 3);
    values.seed = 0xfedcba9876543210;
    CheckLayer(*layer, values, [rate](const LayerValues& v) {
      std::vector<double> y = v.inputs[0];
      for (size_t i = 0; v.training && i < y.size(); ++i) {
        y[i] = IsDropped(rate, v.seed, i) ? 0 : y[i] / (1 - rate);
      }
      return y;
    });
  }
}

TEST(MakeDropoutTest, ARateIsAtLeastZeroAndBelowOne) {
  const std::vector<LayerInput> inputs = {{.shape = {3}}};
  job::Dropout spec;
  for (double rate : {-0.1, 1.0, std::nan("")}) {
    spec.set_rate(rate);
    EXPECT_THAT(MakeDropout(spec, inputs),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
  spec.set_rate(0);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> layer,
                       MakeDropout(spec, inputs));
  EXPECT_TRUE(layer->IsView());
}

INSTANTIATE_TEST_SUITE_P(Devices, DropoutLayerTest, DevicesUnderTest(),
                         DeviceName);

}  // namespace
}  // namespace parasol
