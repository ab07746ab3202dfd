#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ml/device/testing/device_fixture.h"
#include "ml/loss/loss.h"
#include "ml/loss/loss_spec.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

job::Loss QuantileLoss(const std::string& quantile) {
  job::Loss loss;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "custom { type: 'quantile' parameter { name: 'quantile' value: '" +
          quantile + "' } }",
      &loss));
  return loss;
}

class QuantileTest : public DeviceTest {};

TEST_P(QuantileTest, GradientsAreTheDifferencesOfTheMeanLoss) {
  if (!device().shares_host_memory()) GTEST_SKIP() << "computes on the CPU";
  const std::vector<float> labels = {1, -2, 3, .5};
  const std::vector<float> weights = {1, 3};
  ASSERT_OK_AND_ASSIGN(const LossSpec spec,
                       ResolveLoss(QuantileLoss("0.9"), /*outputs=*/2));
  const Loss loss(spec);
  const auto compute = [&](const std::vector<float>& outputs,
                           float* gradient) -> double {
    float* const losses = Put(std::vector<float>(2));
    const Loss::Inputs inputs = {.outputs = Put(outputs),
                                 .labels = Put(labels),
                                 .weights = Put(weights),
                                 .examples = 2};
    EXPECT_OK(loss.Compute(device(), inputs, losses, gradient));
    const std::vector<float> each = Get(losses, 2);
    return (double{each[0]} + double{each[1]}) / 2;
  };
  const std::vector<float> outputs = {0, 0, 4, 0};
  float* const gradient = Put(std::vector<float>(4));
  // (.9 · 1 + .1 · 2) / 2 and 3 · (.1 · 1 + .9 · .5) / 2.
  EXPECT_NEAR(compute(outputs, gradient), (.55 + .825) / 2, 1e-6);
  const std::vector<float> got = Get(gradient, 4);
  for (size_t i = 0; i < outputs.size(); ++i) {
    constexpr float kStep = .125f;
    std::vector<float> above = outputs, below = outputs;
    above[i] += kStep;
    below[i] -= kStep;
    const double want =
        (compute(above, nullptr) - compute(below, nullptr)) / (2 * kStep);
    EXPECT_NEAR(got[i], want, 1e-5) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, QuantileTest, DevicesUnderTest(), DeviceName);

TEST(MakeQuantileTest, AQuantileIsAShare) {
  EXPECT_THAT(ResolveLoss(QuantileLoss("1.5"), 1),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("quantile is \"1.5\", not a number from 0 to "
                                 "1")));
}

}  // namespace
}  // namespace parasol
