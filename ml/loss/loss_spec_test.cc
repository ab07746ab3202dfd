#include "ml/loss/loss_spec.h"

#include <string>

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

job::Loss Parse(const std::string& text) {
  job::Loss loss;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &loss));
  return loss;
}

TEST(LossSpecTest, SparseClassesAreOneLabel) {
  const auto spec =
      ResolveLoss(Parse("sparse_categorical_crossentropy {}"), 10);
  ASSERT_OK(spec.status());
  EXPECT_EQ(spec->label.width, 1);
}

TEST(LossSpecTest, OtherLossesHaveALabelForEachOutput) {
  for (const char* loss : {"categorical_crossentropy {}",
                           "binary_crossentropy {}", "mean_squared_error {}"}) {
    SCOPED_TRACE(loss);
    const auto spec = ResolveLoss(Parse(loss), 10);
    ASSERT_OK(spec.status());
    EXPECT_EQ(spec->label.width, 10);
  }
}

TEST(LossSpecTest, WhatIsNoLossIsNamed) {
  struct Case {
    std::string loss;
    int64_t outputs;
    std::string want;
  };
  const Case cases[] = {
      {"", 1, "loss: no kind is chosen"},
      {"binary_crossentropy { label_smoothing: 1 }", 1,
       "loss.binary_crossentropy.label_smoothing: 1 is not at least 0 and "
       "below 1"},
      {"categorical_crossentropy { label_smoothing: -0.1 }", 3,
       "loss.categorical_crossentropy.label_smoothing: -0.1"},
      {"sparse_categorical_crossentropy { label_smoothing: nan }", 3,
       "loss.sparse_categorical_crossentropy.label_smoothing: nan"},
      {"sparse_categorical_crossentropy {}", 1,
       "the model has 1 outputs, one for each class, which is not in 2 to "
       "16777216"},
      {"sparse_categorical_crossentropy {}", (1 << 24) + 1, "16777217 outputs"},
      {"mean_squared_error {}", 0, "the model has 0 outputs"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.loss);
    EXPECT_THAT(
        ResolveLoss(Parse(c.loss), c.outputs).status(),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.want)));
  }
}

}  // namespace
}  // namespace parasol
