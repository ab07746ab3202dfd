#include "cluster/job/evaluation_policy.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "cluster/job/defaults.h"
#include "cluster/job/job_file.h"
#include "cluster/job/validate.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

constexpr char kEval[] =
    "eval { idx { images: \"i\" labels: \"l\" } batch_size: 10 }";

// A job of one output, whose metrics are accuracy and auc.
absl::StatusOr<job::Job> Parse(const std::string& fields) {
  ASSIGN_OR_RETURN(
      job::Job job,
      ParseJob("model { input_shape: 4 layer { dense { units: 1 } } "
               "loss { binary_crossentropy {} } } "
               "train { idx { images: \"i\" labels: \"l\" } batch_size: 2 }",
               "job"));
  ASSIGN_OR_RETURN(const job::Job more, ParseJob(fields, "more"));
  job.MergeFrom(more);
  FillDefaults(job);
  RETURN_IF_ERROR(Validate(job).status());
  return job;
}

std::string Adam(const std::string& fields) {
  return absl::StrCat(" optimizer { adam {} ", fields, " } ");
}

TEST(EvaluationPolicyTest, DefaultsAreThoseOfKeras) {
  ASSERT_OK_AND_ASSIGN(
      const job::Job job,
      Parse(absl::StrCat(kEval, Adam("reduce_on_plateau { metric: \"auc\" }"),
                         "end { steps: 9 early_stopping {} } "
                         "checkpoint { keep_best { metric: \"accuracy\" } }")));
  const job::EarlyStopping& stopping = job.end().early_stopping();
  EXPECT_EQ(stopping.metric(), "loss");
  EXPECT_EQ(stopping.mode(), job::MIN);
  EXPECT_TRUE(stopping.has_patience());
  EXPECT_EQ(stopping.patience(), 0);
  EXPECT_EQ(job.checkpoint().keep_best().mode(), job::MAX);
  const job::ReduceOnPlateau& plateau = job.optimizer().reduce_on_plateau();
  EXPECT_EQ(plateau.mode(), job::MAX);
  EXPECT_EQ(plateau.factor(), 0.1);
  EXPECT_EQ(plateau.patience(), 10);
  EXPECT_EQ(plateau.min_delta(), 1e-4);
  EXPECT_TRUE(job.tensorboard());
}

TEST(EvaluationPolicyTest, EachMetricHasItsMode) {
  const struct {
    std::string metric;
    job::MetricMode mode;
  } cases[] = {{"log_loss {}", job::MIN},
               {"root_mean_squared_error {}", job::MIN},
               {"mean_absolute_error {}", job::MIN},
               {"pr_auc {}", job::MAX},
               {"r_squared {}", job::MAX},
               {"f1 {}", job::MAX}};
  for (const auto& [metric, mode] : cases) {
    SCOPED_TRACE(metric);
    const std::string name = metric.substr(0, metric.find(' '));
    ASSERT_OK_AND_ASSIGN(
        const job::Job job,
        Parse(absl::StrCat(kEval, Adam(""), "model { metric { ", metric,
                           " } } end { steps: 9 early_stopping { metric: \"",
                           name, "\" } }")));
    EXPECT_EQ(job.end().early_stopping().mode(), mode);
  }
}

TEST(EvaluationPolicyTest, PointsAreTenSecondsApartUnlessStepsAreSaid) {
  ASSERT_OK_AND_ASSIGN(const job::Job by_default,
                       Parse(absl::StrCat(Adam(""), "end { steps: 9 }")));
  EXPECT_EQ(by_default.summary().every_seconds(), 10);
  EXPECT_FALSE(by_default.summary().has_every_steps());
  ASSERT_OK_AND_ASSIGN(const job::Job by_steps,
                       Parse(absl::StrCat(Adam(""),
                                          "end { steps: 9 } summary "
                                          "{ every_steps: 3 }")));
  EXPECT_EQ(by_steps.summary().every_seconds(), 0);
}

TEST(EvaluationPolicyTest, WhatCannotBeDecidedIsNamed) {
  const struct {
    std::string fields;
    std::string error;
  } cases[] = {
      {absl::StrCat(kEval, Adam(""),
                    "end { steps: 9 early_stopping { metric: \"acc\" } }"),
       "end.early_stopping.metric: \"acc\" is no metric of the model, which "
       "has loss, accuracy, auc; add it to model.metric, or choose one"},
      {absl::StrCat(kEval, Adam(""),
                    "end { steps: 9 early_stopping { metric: \"acuracy\" } }"),
       "or choose one; did you mean \"accuracy\"?"},
      {absl::StrCat(Adam(""), "end { steps: 9 early_stopping {} }"),
       "end.early_stopping: needs `eval`"},
      {absl::StrCat(kEval, Adam(""),
                    "model { metric { mean_label {} } } end { steps: 9 } "
                    "checkpoint { keep_best { metric: \"mean_label\" } }"),
       "checkpoint.keep_best.mode: AUTO does not say which mean_label is "
       "better; set MIN or MAX"},
      {absl::StrCat(kEval, Adam("reduce_on_plateau { factor: 1 }"),
                    "end { steps: 9 }"),
       "optimizer.reduce_on_plateau.factor: 1 is not above 0 and below 1"},
      {absl::StrCat(kEval,
                    Adam("reduce_on_plateau {} learning_rate_schedule { "
                         "cosine_decay { decay_steps: 5 } }"),
                    "end { steps: 9 }"),
       "optimizer.reduce_on_plateau: learning_rate_schedule changes the rate"},
      {absl::StrCat(kEval, Adam(""), "end { steps: 9 } evaluation {}"),
       "evaluation: neither every_steps nor every_seconds is set"},
      {absl::StrCat(Adam(""), "end { steps: 9 } evaluation { every_steps: 5 }"),
       "evaluation: needs `eval`"},
      {absl::StrCat(kEval, Adam(""),
                    "end { steps: 9 } evaluation { every_steps: 0 }"),
       "evaluation.every_steps"},
      {absl::StrCat(kEval, Adam(""),
                    "end { steps: 9 } evaluation { max_lag: 1 }"),
       "evaluation: neither every_steps nor every_seconds is set"},
      {absl::StrCat(kEval, Adam(""),
                    "end { steps: 9 } evaluation { every_steps: 5 max_lag: -1 "
                    "}"),
       "evaluation.max_lag"},
      {absl::StrCat(Adam(""), "end { steps: 9 } summary { every_steps: 0 }"),
       "summary.every_steps"},
      {absl::StrCat(Adam(""), "end { steps: 9 } summary { every_seconds: 0 }"),
       "summary.every_seconds"},
      {absl::StrCat(Adam(""),
                    "end { steps: 9 } summary { every_seconds: inf }"),
       "summary.every_seconds"},
      {absl::StrCat(kEval, Adam(""),
                    "end { steps: 9 early_stopping { patience: -1 } }"),
       "end.early_stopping.patience"},
  };
  for (const auto& [fields, error] : cases) {
    SCOPED_TRACE(error);
    EXPECT_THAT(Parse(fields),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(error)));
  }
}

TEST(EvaluationPolicyTest, AllFaultsAreNamedAtOnce) {
  ASSERT_OK_AND_ASSIGN(
      job::Job job,
      ParseJob(
          "model { input_shape: 4 layer { dense { units: 0 } } "
          "layer { dense { units: 1 } } loss { binary_crossentropy {} } } "
          "train { idx { images: \"i\" labels: \"l\" } } optimizer { sgd "
          "{} reduce_on_plateau { factor: 2 patience: -3 } } evaluation {} "
          "end { steps: 9 early_stopping { metric: \"auk\" patience: -1 } } "
          "checkpoint { keep_best { metric: \"acc\" } }",
          "job"));
  job.mutable_eval()->CopyFrom(job.train());
  FillDefaults(job);
  Faults faults;
  Validate(job, faults);
  std::vector<std::string> messages;
  for (const absl::Status& fault : faults.all()) {
    messages.emplace_back(fault.message());
  }
  EXPECT_THAT(
      messages,
      IsSupersetOf({HasSubstr("evaluation: neither"),
                    HasSubstr("end.early_stopping.metric: \"auk\""),
                    HasSubstr("end.early_stopping.patience: -1"),
                    HasSubstr("checkpoint.keep_best.metric: \"acc\""),
                    HasSubstr("optimizer.reduce_on_plateau.factor: 2"),
                    HasSubstr("optimizer.reduce_on_plateau.patience: -3")}));
}

}  // namespace
}  // namespace parasol
