// Losses of tensors against the losses of jobs, values and gradients.

#include "ml/tape/losses.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ml/device/device.h"
#include "ml/loss/loss.h"
#include "ml/loss/loss_spec.h"
#include "ml/tape/operations.h"
#include "ml/tape/tape.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

constexpr int64_t kExamples = 6;

struct Case {
  std::string loss;  // of a job
  std::function<Tensor(const Tensor&, const Tensor&)> f;
  int64_t outputs = 3;
  enum { kBits, kNumbers, kClass, kShares } labels = kBits;
  float low = -3, high = 3;  // range of the outputs
};

std::vector<Case> Cases() {
  const auto binary = [](CrossentropyOptions options) {
    return [options](const Tensor& y, const Tensor& z) {
      return BinaryCrossentropy(y, z, options);
    };
  };
  return {
      {"binary_crossentropy {}", binary({})},
      {"binary_crossentropy { label_smoothing: .2 }",
       binary({.label_smoothing = .2f})},
      {"binary_crossentropy { from_logits: false label_smoothing: .1 }",
       binary({.from_logits = false, .label_smoothing = .1f}), 3, Case::kBits,
       0, 1},
      {"categorical_crossentropy { label_smoothing: .1 }",
       [](const Tensor& y, const Tensor& z) {
         return CategoricalCrossentropy(y, z, {.label_smoothing = .1f});
       },
       4, Case::kShares},
      {"sparse_categorical_crossentropy {}",
       [](const Tensor& y, const Tensor& z) {
         return SparseCategoricalCrossentropy(y, z);
       },
       4, Case::kClass},
      {"mean_squared_error {}", MeanSquaredError, 3, Case::kNumbers},
      {"mean_absolute_error {}", MeanAbsoluteError, 3, Case::kNumbers},
      {"huber { delta: .7 }",
       [](const Tensor& y, const Tensor& z) { return Huber(y, z, .7f); }, 3,
       Case::kNumbers},
      {"hinge {}", Hinge},
      {"poisson {}", Poisson, 3, Case::kNumbers, .5, 3},
  };
}

Tensor Draw(const TensorShape& shape, float low, float high, uint32_t count) {
  return RandomUniform(shape, {.seed = 3, .count = count}, low, high);
}

Tensor LabelsOf(const Case& c) {
  switch (c.labels) {
    case Case::kBits:
      return Greater(Draw({kExamples, c.outputs}, 0, 1, 2), .5f);
    case Case::kNumbers:
      return Draw({kExamples, c.outputs}, 0, 3, 2);
    case Case::kClass:
      return Cast(Cast(Draw({kExamples, 1}, 0, c.outputs, 2), DType::kInt64),
                  DType::kFloat32);
    case Case::kShares:
      break;
  }
  return Softmax(Draw({kExamples, c.outputs}, -2, 2, 2));
}

TEST(TensorLossesTest, HaveTheNumbersOfJobs) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Device> device,
                       Device::Open("cpu"));
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.loss);
    job::Loss message;
    ASSERT_TRUE(
        google::protobuf::TextFormat::ParseFromString(c.loss, &message));
    ASSERT_OK_AND_ASSIGN(const LossSpec spec, ResolveLoss(message, c.outputs));
    const Tensor outputs = Draw({kExamples, c.outputs}, c.low, c.high, 1);
    const Tensor labels = LabelsOf(c);
    std::vector<float> losses(kExamples), gradient(outputs.size());
    ASSERT_OK(Loss(spec).Compute(*device,
                                 {.outputs = outputs.values().data(),
                                  .labels = labels.values().data(),
                                  .examples = kExamples},
                                 losses.data(), gradient.data()));
    GradientTape tape;
    tape.Watch(outputs);
    const Tensor own = c.f(labels, outputs);
    const Tensor by_outputs = tape.Gradient(ReduceMean(own), outputs);
    ASSERT_OK(own.status());
    EXPECT_EQ(own.shape(), TensorShape({kExamples}));
    EXPECT_THAT(own.values(), Pointwise(FloatNear(2e-6), losses));
    EXPECT_THAT(by_outputs.values(), Pointwise(FloatNear(1e-6), gradient));
  }
}

TEST(TensorLossesTest, AnAxisOfOneMayBeMissing) {
  const Tensor bits = Tensor::Ints({0, 1}, {2});
  const Tensor column = Tensor::Of({1, -2}, {2, 1});
  const Tensor row = Tensor::Of({1, -2}, {2});
  const Tensor want = BinaryCrossentropy(Tensor::Of({0, 1}, {2, 1}), column);
  EXPECT_EQ(BinaryCrossentropy(bits, column).values(), want.values());
  EXPECT_EQ(BinaryCrossentropy(Tensor::Ints({0, 1}, {2, 1}), row).values(),
            want.values());
}

TEST(TensorLossesTest, ShapesThatDifferAreNotBroadcast) {
  EXPECT_THAT(
      MeanSquaredError(Zeros({4}), Zeros({3, 1})).status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               "mean_squared_error: labels of shape [4] for outputs of shape "
               "[3, 1]"));
}

TEST(TensorLossesTest, ALabelThatIsNoClassIsNamed) {
  for (const Tensor& labels :
       {Tensor::Ints({0, 5}, {2}), Tensor::Of({0, 5}, {2, 1})}) {
    EXPECT_THAT(SparseCategoricalCrossentropy(labels, Zeros({2, 3})).status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("label 5 is not one of 3 classes")));
  }
}

TEST(TensorLossesTest, ProbabilitiesOfClassesAreLogits) {
  const Tensor labels = Tensor::Ints({2, 0}, {2});
  const Tensor logits = Draw({2, 3}, -2, 2, 7);
  EXPECT_THAT(
      SparseCategoricalCrossentropy(labels, Softmax(logits),
                                    {.from_logits = false})
          .values(),
      Pointwise(FloatNear(1e-6),
                SparseCategoricalCrossentropy(labels, logits).values()));
}

TEST(TensorLossesTest, LargeLogitsOverflowNothing) {
  const Tensor z = Tensor::Of({1000, -1000}, {2, 1});
  const Tensor y = Tensor::Of({0, 0}, {2, 1});
  EXPECT_THAT(BinaryCrossentropy(y, z).values(),
              Pointwise(FloatNear(0), {1000.f, 0.f}));
}

}  // namespace
}  // namespace parasol
