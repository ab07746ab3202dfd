#include "ml/loss/check_labels.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/loss/binary_crossentropy.h"
#include "ml/loss/categorical_crossentropy.h"
#include "ml/loss/mean_squared_error.h"
#include "ml/loss/poisson.h"
#include "ml/loss/sparse_categorical_crossentropy.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr const LossKind& kSparse = kSparseCategoricalCrossentropyKind;
constexpr const LossKind& kCategorical = kCategoricalCrossentropyKind;
constexpr const LossKind& kBinary = kBinaryCrossentropyKind;
constexpr const LossKind& kCount = kPoissonKind;
constexpr const LossKind& kSquared = kMeanSquaredErrorKind;

LossSpec Spec(const LossKind& kind, int64_t outputs) {
  return {.outputs = outputs, .label = kind.label(outputs)};
}

Batch WithLabels(int64_t size, const std::vector<float>& labels) {
  Batch batch;
  batch.size = size;
  batch.labels.assign(labels.begin(), labels.end());
  return batch;
}

absl::Status CheckLabels(const LossSpec& loss, const Batch& batch) {
  return CheckLabels(loss, batch.size, batch.labels);
}

TEST(CheckLabelsTest, GoodLabelsAreOk) {
  EXPECT_OK(CheckLabels(Spec(kSparse, 4), WithLabels(3, {0, 3, 1})));
  EXPECT_OK(CheckLabels(Spec(kCategorical, 3),
                        WithLabels(2, {0, 1, 0, .33f, .33f, .33f})));
  EXPECT_OK(CheckLabels(Spec(kBinary, 2), WithLabels(2, {0, 1, .5f, 1})));
  EXPECT_OK(CheckLabels(Spec(kSquared, 1), WithLabels(2, {-1e30f, 1e30f})));
  EXPECT_OK(CheckLabels(Spec(kCount, 1), WithLabels(2, {0, 7})));
}

TEST(CheckLabelsTest, ABadLabelIsNamed) {
  struct Case {
    LossSpec loss;
    Batch batch;
    std::string want;
  };
  const Case cases[] = {
      {Spec(kSparse, 4), WithLabels(1, {4}),
       "label 4 of example 0 of the batch is not a class from 0 to 3"},
      {Spec(kSparse, 4), WithLabels(2, {0, -1}), "label -1 of example 1"},
      {Spec(kCount, 1), WithLabels(2, {0, -1}),
       "label -1 of example 1 of the batch is a count below 0"},
      {Spec(kSparse, 4), WithLabels(2, {0, 1.5}), "label 1.5 of example 1"},
      {Spec(kSparse, 4), WithLabels(2, {0, kNan}), "label nan of example 1"},
      {Spec(kCategorical, 2), WithLabels(1, {-.5, 1.5}),
       "label -0.5 of output 0 of example 0 of the batch is not between 0 and "
       "1"},
      {Spec(kCategorical, 2), WithLabels(2, {1, 0, 1, 1}),
       "the labels of example 1 of the batch add up to 2; probabilities of "
       "classes must add up to 1"},
      {Spec(kBinary, 1), WithLabels(2, {1, -1}),
       "label -1 of example 1 of the batch is not between 0 and 1"},
      {Spec(kBinary, 2), WithLabels(2, {0, 0, 0, 1.5}),
       "label 1.5 of output 1 of example 1 of the batch is not between 0 and "
       "1"},
      {Spec(kBinary, 1), WithLabels(1, {kNan}), "label nan of example 0"},
      {Spec(kSquared, 1), WithLabels(2, {0, kInfinity}),
       "label inf of example 1 of the batch is not finite"},
      {Spec(kSparse, 4), WithLabels(2, {1}),
       "a batch of 2 examples has 1 labels, not 2"},
      {Spec(kBinary, 2), WithLabels(2, {1, 0}),
       "a batch of 2 examples has 2 labels, not 4"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.want);
    EXPECT_THAT(
        CheckLabels(c.loss, c.batch),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.want)));
  }
}

}  // namespace
}  // namespace parasol
