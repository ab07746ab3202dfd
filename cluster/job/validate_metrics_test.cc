#include "cluster/job/validate_metrics.h"

#include <string>

#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ml/model/graph.h"

namespace parasol {
namespace {

using ::testing::StartsWith;

// With `units` outputs.
job::Model ModelOf(int units, const std::string& loss_and_metrics) {
  job::Model model;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"pb(input_shape: 4
           layer {
             name: "last"
             dense {
               kernel_initializer { zeros {} }
               bias_initializer { zeros {} }
             }
           })pb",
      &model));
  model.mutable_layer(0)->mutable_dense()->set_units(units);
  model.MergeFrom([&] {
    job::Model rest;
    EXPECT_TRUE(
        google::protobuf::TextFormat::ParseFromString(loss_and_metrics, &rest));
    return rest;
  }());
  return model;
}

// Checks loss and metrics, as Validate() does.
absl::Status ValidateLoss(const job::Model& model) {
  ASSIGN_OR_RETURN(const Graph graph, ResolveGraph(model));
  return ValidateMetrics(model, graph.outputs);
}

TEST(ValidateLossTest, WhatFitsIsAccepted) {
  EXPECT_OK(
      ValidateLoss(ModelOf(3, "loss { sparse_categorical_crossentropy {} }")));
  EXPECT_OK(ValidateLoss(
      ModelOf(3,
              "loss { categorical_crossentropy { label_smoothing: .1 } } "
              "metric { accuracy {} }")));
  EXPECT_OK(ValidateLoss(
      ModelOf(1,
              "loss { binary_crossentropy {} } metric { auc {} } "
              "metric { log_loss {} } metric { mean_prediction {} }")));
  EXPECT_OK(ValidateLoss(ModelOf(1,
                                 "loss { mean_squared_error {} } "
                                 "metric { root_mean_squared_error {} }")));
}

TEST(ValidateLossTest, WhatDoesNotFitIsNamedWithItsField) {
  struct Case {
    int units;
    std::string loss_and_metrics;
    std::string want;
  };
  const Case cases[] = {
      {3, "loss { binary_crossentropy { label_smoothing: 1 } }",
       "model.loss.binary_crossentropy.label_smoothing: 1"},
      {1, "loss { sparse_categorical_crossentropy {} }",
       "model.loss.sparse_categorical_crossentropy: the model has 1 outputs"},
      {3, "loss { binary_crossentropy {} } metric { auc {} }",
       "model.metric[0]: auc needs a model of one output, this one has 3"},
      {1, "loss { mean_squared_error {} } metric { accuracy {} }",
       "model.metric[0]: accuracy can't be computed with the loss "
       "mean_squared_error"},
      {1, "loss { mean_squared_error {} } metric { auc {} } metric {}",
       "model.metric[1]: no metric is chosen"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.loss_and_metrics);
    EXPECT_THAT(
        ValidateLoss(ModelOf(c.units, c.loss_and_metrics)),
        StatusIs(absl::StatusCode::kInvalidArgument, StartsWith(c.want)));
  }
}

}  // namespace
}  // namespace parasol
