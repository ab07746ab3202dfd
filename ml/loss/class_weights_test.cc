#include "ml/loss/class_weights.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ml/loss/loss_spec.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

job::Loss Parse(const std::string& text) {
  job::Loss loss;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &loss));
  return loss;
}

TEST(ClassWeightsTest, AreOneForClassesThatAreNotListed) {
  EXPECT_THAT(ClassWeightsOf(Parse("")), IsEmpty());
  EXPECT_THAT(ClassWeightsOf(Parse("class_weight { class: 3 weight: 2 }"
                                   "class_weight { class: 1 weight: .5 }")),
              ElementsAre(1, .5, 1, 2));
}

TEST(ClassWeightsTest, WhatTheyCannotBeIsSaid) {
  const auto expect_fault = [](const std::string& loss, int64_t outputs,
                               const std::string& fault) {
    EXPECT_THAT(ResolveLoss(Parse(loss), outputs).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(fault)))
        << loss;
  };
  const std::string one = " class_weight { class: 1 weight: 3 }";
  for (const char* const loss :
       {"mean_squared_error {}", "poisson {}", "huber { delta: 1 }"}) {
    expect_fault(loss + one, 1,
                 "loss.class_weight: the labels of this loss are numbers");
  }
  expect_fault("binary_crossentropy {}" + one, 2, "numbers, not classes");
  expect_fault(
      "sparse_categorical_crossentropy {}"
      " class_weight { class: 4 weight: 1 }",
      4, "loss.class_weight[0].class: 4 is not a class from 0 to 3");
  expect_fault("binary_crossentropy {} class_weight { class: -1 weight: 1 }", 1,
               "-1 is not a class from 0 to 1");
  expect_fault("binary_crossentropy {} class_weight { weight: 1 }", 1,
               "unset is not a class");
  expect_fault("binary_crossentropy {} class_weight { class: 1 }", 1,
               "loss.class_weight[0].weight");
  expect_fault("binary_crossentropy {}" + one + one, 1,
               "loss.class_weight[1].class: 1 has a weight already");
  for (const char* const weight : {"-1", "nan", "inf"}) {
    expect_fault(std::string("binary_crossentropy {} class_weight { class: 0 "
                             "weight: ") +
                     weight + " }",
                 1, "is not a number of at least 0");
  }
  for (const char* const loss :
       {"binary_crossentropy {}", "binary_focal_crossentropy {}", "hinge {}"}) {
    EXPECT_OK(ResolveLoss(Parse(loss + one), 1)) << loss;
  }
  EXPECT_OK(ResolveLoss(Parse("categorical_crossentropy {}" + one), 2));
}

// As Keras's class_weight: a one-hot's class is its largest element.
TEST(ClassWeightsTest, MultiplyTheWeightsOfExamples) {
  ModelInputs inputs;
  inputs.class_weights = {.5, 3};
  inputs.label = {.kind = LabelForm::Kind::kClass, .classes = 3};
  Batch batch = {.size = 4, .labels = {1, 0, 2, 1}};
  ApplyClassWeights(inputs, batch);
  EXPECT_THAT(batch.weights, ElementsAre(3, .5, 1, 3));
  // The data set's own weights stay.
  ApplyClassWeights(inputs, batch);
  EXPECT_THAT(batch.weights, ElementsAre(9, .25, 1, 9));

  inputs.label = {.kind = LabelForm::Kind::kOneHot, .width = 2};
  batch = {.size = 3, .labels = {.9, .1, .2, .8, 1, 0}};
  ApplyClassWeights(inputs, batch);
  EXPECT_THAT(batch.weights, ElementsAre(.5, 3, .5));

  inputs.label = {.is_probability = true};
  batch = {.size = 4, .labels = {0, 1, .5, .75}};
  ApplyClassWeights(inputs, batch);
  EXPECT_THAT(batch.weights, ElementsAre(.5, 3, .5, 3));

  batch = {.size = 2, .labels = {0, 1}};
  inputs.class_weights.clear();
  ApplyClassWeights(inputs, batch);
  EXPECT_THAT(batch.weights, IsEmpty());
}

}  // namespace
}  // namespace parasol
