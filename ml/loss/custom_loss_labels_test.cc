// Custom losses whose labels mean nothing, or that have none.

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ml/device/testing/device_fixture.h"
#include "ml/loss/custom_loss.h"
#include "ml/loss/loss.h"
#include "ml/loss/loss_spec.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;

// -log(label) · output, which is no number for the label 0.
class LogOfLabel : public ExampleLoss {
 public:
  LabelForm label() const override { return {}; }
  double Of(absl::Span<const float> outputs, absl::Span<const float> labels,
            absl::Span<float> gradient) const override {
    if (!gradient.empty()) gradient[0] = 1 / labels[0];
    return -std::log(double{labels[0]}) * double{outputs[0]};
  }
};

// The output itself: there is no label.
class WithoutLabel : public ExampleLoss {
 public:
  LabelForm label() const override { return {.kind = LabelForm::Kind::kNone}; }
  double Of(absl::Span<const float> outputs, absl::Span<const float> labels,
            absl::Span<float> gradient) const override {
    EXPECT_TRUE(labels.empty());
    if (!gradient.empty()) gradient[0] = 1;
    return double{outputs[0]};
  }
};

const CustomLossRegistration kLogOfLabel("log_of_label", [](const job::Custom&,
                                                            int64_t) {
  return std::make_unique<LogOfLabel>();
});
const CustomLossRegistration kWithoutLabel(
    "without_label", [](const job::Custom&, int64_t) {
      return std::make_unique<WithoutLabel>();
    });

absl::StatusOr<LossSpec> Resolve(const std::string& text, int64_t outputs) {
  job::Loss loss;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &loss));
  return ResolveLoss(loss, outputs);
}

class CustomLossLabelsTest : public DeviceTest {};

// Examples that do not count for an output have the label 0.
TEST_P(CustomLossLabelsTest, AnExampleOfWeight0AddsNothingWhateverItsLossIs) {
  if (!device().shares_host_memory()) GTEST_SKIP() << "runs on the host";
  ASSERT_OK_AND_ASSIGN(const LossSpec spec,
                       Resolve("custom { type: 'log_of_label' }", 1));
  const Loss loss(spec);
  float* const losses = Put(std::vector<float>(2, 7));
  float* const gradient = Put(std::vector<float>(2, 7));
  const Loss::Inputs inputs = {.outputs = Put<float>({3, 3}),
                               .labels = Put<float>({0, 1}),
                               .weights = Put<float>({0, 1}),
                               .examples = 2};
  ASSERT_OK(loss.Compute(device(), inputs, losses, gradient));
  EXPECT_THAT(Get(losses, 2), ElementsAre(0, 0));
  EXPECT_THAT(Get(gradient, 2), ElementsAre(0, .5));
}

INSTANTIATE_TEST_SUITE_P(Devices, CustomLossLabelsTest, DevicesUnderTest(),
                         DeviceName);

TEST(ResolveCustomLossTest, ItMayHaveNoLabel) {
  ASSERT_OK_AND_ASSIGN(const LossSpec spec,
                       Resolve("custom { type: 'without_label' }", 1));
  EXPECT_EQ(spec.label.width, 0);
  EXPECT_OK(Loss(spec).CheckLabels(2, {}));
}

}  // namespace
}  // namespace parasol
