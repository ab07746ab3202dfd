#include "ml/loss/custom_loss.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ml/device/testing/device_fixture.h"
#include "ml/loss/loss.h"
#include "ml/loss/loss_spec.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// (output - label)³ over classes 0 to outputs - 1, of the first output.
class Cubic : public ExampleLoss {
 public:
  explicit Cubic(int64_t outputs) : outputs_(outputs) {}

  LabelForm label() const override {
    return {.kind = LabelForm::Kind::kClass, .width = 1, .classes = outputs_};
  }
  double Of(absl::Span<const float> outputs, absl::Span<const float> labels,
            absl::Span<float> gradient) const override {
    const double error = double{outputs[0]} - double{labels[0]};
    if (!gradient.empty()) {
      std::fill(gradient.begin(), gradient.end(), 0.0f);
      gradient[0] = static_cast<float>(3 * error * error);
    }
    return error * error * error;
  }

 private:
  const int64_t outputs_;
};

absl::StatusOr<std::unique_ptr<const CustomLoss>> MakeCubic(
    const job::Custom& spec, int64_t outputs) {
  if (spec.parameter_size() > 0) {
    return absl::InvalidArgumentError("cubic has no parameters");
  }
  return std::make_unique<Cubic>(outputs);
}

const CustomLossRegistration kRegistration("cubic", MakeCubic);

absl::StatusOr<LossSpec> Resolve(const std::string& text, int64_t outputs) {
  job::Loss loss;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &loss));
  return ResolveLoss(loss, outputs);
}

class CustomLossTest : public DeviceTest {};

TEST_P(CustomLossTest, LossesAreWeightedAndTheGradientIsThatOfTheirMean) {
  if (!device().shares_host_memory()) GTEST_SKIP() << "runs on the host";
  ASSERT_OK_AND_ASSIGN(const LossSpec spec,
                       Resolve("custom { type: 'cubic' }", 2));
  const Loss loss(spec);
  EXPECT_EQ(loss.label_width(), 1);
  float* const losses = Put(std::vector<float>(2));
  float* const gradient = Put(std::vector<float>(4));
  const Loss::Inputs weighted = {.outputs = Put<float>({3, 9, 2, 9}),
                                 .labels = Put<float>({1, 0}),
                                 .weights = Put<float>({1, .5}),
                                 .examples = 2};
  ASSERT_OK(loss.Compute(device(), weighted, losses, gradient));
  EXPECT_THAT(Get(losses, 2), ElementsAre(8, 4));
  EXPECT_THAT(Get(gradient, 4), ElementsAre(6, 0, 3, 0));
  Loss::Inputs alike = weighted;
  alike.weights = nullptr;
  ASSERT_OK(loss.Compute(device(), alike, losses, /*gradient=*/nullptr));
  EXPECT_THAT(Get(losses, 2), ElementsAre(8, 8));
}

TEST_P(CustomLossTest, WithoutItsCodeItGivesNoGradientButPredictionsCanBeMade) {
  ASSERT_OK_AND_ASSIGN(const LossSpec spec,
                       Resolve("custom { type: 'elsewhere' }", 1));
  EXPECT_FALSE(spec.label_is_known());
  const auto lacks = StatusIs(absl::StatusCode::kFailedPrecondition,
                              AllOf(HasSubstr("no custom loss \"elsewhere\""),
                                    HasSubstr("(it has: cubic")));
  EXPECT_THAT(spec.CheckCode(), lacks);
  EXPECT_THAT(CheckLossCode(std::vector<OutputSpec>{{.loss = spec}}), lacks);
  const Loss loss(spec);
  float* const losses = Put<float>({7});
  const Loss::Inputs inputs = {
      .outputs = Put<float>({3}), .labels = Put<float>({1}), .examples = 1};
  EXPECT_THAT(loss.Compute(device(), inputs, losses, Put<float>({0})), lacks);
  ASSERT_OK(loss.Compute(device(), inputs, losses, /*gradient=*/nullptr));
  EXPECT_THAT(Get(losses, 1), ElementsAre(0));
}

INSTANTIATE_TEST_SUITE_P(Devices, CustomLossTest, DevicesUnderTest(),
                         DeviceName);

TEST(ResolveCustomLossTest, ItsLabelsAreCheckedAsThoseOfOtherLosses) {
  ASSERT_OK_AND_ASSIGN(const LossSpec spec,
                       Resolve("custom { type: 'cubic' }", 3));
  EXPECT_OK(CheckLossCode(std::vector<OutputSpec>{{.loss = spec}}));
  const Loss loss(spec);
  EXPECT_OK(loss.CheckLabels(2, std::vector<float>{0, 2}));
  EXPECT_THAT(loss.CheckLabels(2, std::vector<float>{0, 3}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("not a class from 0 to 2")));
}

TEST(ResolveCustomLossTest, ClassWeightsNeedClasses) {
  EXPECT_OK(Resolve(
      "custom { type: 'cubic' } class_weight { class: 2 weight: 3 }", 3));
  EXPECT_THAT(
      Resolve("custom { type: 'cubic' } class_weight { class: 3 weight: 3 }",
              3),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("3 is not a class from 0 to 2")));
  // The chief leaves it to the workers, which know the labels.
  EXPECT_OK(Resolve(
      "custom { type: 'elsewhere' } class_weight { class: 9 weight: 3 }", 3));
}

TEST(ResolveCustomLossTest, WhatItsCodeRefusesIsNamed) {
  EXPECT_THAT(Resolve("custom { type: 'cubic' parameter { name: 'a' } }", 1),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("loss.custom: cubic has no parameters")));
  EXPECT_THAT(Resolve("custom {}", 1),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("loss.custom.type")));
}

}  // namespace
}  // namespace parasol
