#include "cluster/checkpoint/evaluation_decisions.h"

#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

job::Job JobWith(const std::string& fields) {
  job::Job job;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(fields, &job));
  return job;
}

// Evaluations of the steps 10, 20, … with these values of the metric "auc".
std::vector<Evaluation> Auc(const std::vector<double>& values) {
  std::vector<Evaluation> evaluations;
  for (const double value : values) {
    Evaluation& evaluation = evaluations.emplace_back();
    evaluation.global_step = 10 * static_cast<int64_t>(evaluations.size());
    evaluation.metrics = {{"accuracy", 0.5}, {"auc", value}};
    evaluation.loss = 1 - value;
  }
  return evaluations;
}

// The number of evaluations after which the job ends; 0: it does not.
int EndAfter(const job::Job& job, const std::vector<double>& values) {
  const std::vector<Evaluation> all = Auc(values);
  for (size_t i = 1; i <= all.size(); ++i) {
    const auto decisions =
        DecideByEvaluations(job, absl::MakeConstSpan(all).first(i));
    if (decisions.stop) return static_cast<int>(i);
  }
  return 0;
}

job::Job Stopping(const std::string& fields) {
  return JobWith("end { early_stopping { metric: \"auc\" mode: MAX " + fields +
                 " } }");
}

TEST(EvaluationDecisionsTest, AMetricThatNeverWasANumberHasNoBestValue) {
  const job::Job job = Stopping("patience: 1");
  EXPECT_EQ(DecideByEvaluations(job, Auc({kNan, kNan})).stop,
            "early stopping: auc was not a number in 2 evaluations, the last "
            "one at step 20");
}

// The job ends where tf.keras.callbacks.EarlyStopping ends it.
TEST(EvaluationDecisionsTest, TheJobEndsAfterPatienceWithoutImprovement) {
  const job::Job job = Stopping("patience: 2");
  EXPECT_EQ(EndAfter(job, {.5, .6, .7}), 0);
  EXPECT_EQ(EndAfter(job, {.5, .6, .6, .6}), 4);
  EXPECT_EQ(EndAfter(job, {.5, .4, .6, .5, .55, .7}), 5);
  EXPECT_EQ(EndAfter(job, {kNan, .5, kNan, kNan}), 4);
  // The first evaluation never ends it.
  EXPECT_EQ(EndAfter(Stopping("patience: 0"), {kNan, .5, .6, .5}), 4);
  EXPECT_EQ(EndAfter(Stopping("patience: 0"), {.5, .5}), 2);
}

TEST(EvaluationDecisionsTest, AChangeBelowMinDeltaIsNoImprovement) {
  EXPECT_EQ(EndAfter(Stopping("patience: 1 min_delta: .2"), {.5, .6, .9}), 2);
  EXPECT_EQ(EndAfter(Stopping("patience: 1 min_delta: .05"), {.5, .6, .9}), 0);
}

TEST(EvaluationDecisionsTest, TheReasonNamesTheMetricTheBestAndItsStep) {
  auto decisions =
      DecideByEvaluations(Stopping("patience: 1"), Auc({.5, .75, .6}));
  EXPECT_THAT(decisions.stop.value_or(""),
              HasSubstr("auc was 0.6 at step 30, and has not improved on its "
                        "best, 0.75 at step 20, in 1 evaluations"));
  decisions =
      DecideByEvaluations(Stopping("patience: 1 min_delta: .2"), Auc({.5, .6}));
  ASSERT_TRUE(decisions.stop);
  EXPECT_THAT(*decisions.stop,
              HasSubstr("0.5 at step 10, by more than min_delta 0.2 in 1 "));
}

TEST(EvaluationDecisionsTest, TheLossIsAMetricToBeSmall) {
  const job::Job job = JobWith(
      "end { early_stopping { metric: \"loss\" mode: MIN patience: 1 } }");
  EXPECT_EQ(EndAfter(job, {.5, .6, .7}), 0);
  EXPECT_EQ(EndAfter(job, {.5, .4}), 2);
}

TEST(EvaluationDecisionsTest, InitialValuesAndOtherMetricsDoNotCount) {
  std::vector<Evaluation> evaluations = Auc({.9, .5, .6});
  evaluations[0].global_step = 0;
  EXPECT_FALSE(DecideByEvaluations(Stopping("patience: 1"), evaluations).stop);
  evaluations = Auc({.5, .1, .6});
  evaluations[1].metrics.clear();
  EXPECT_FALSE(DecideByEvaluations(Stopping("patience: 1"), evaluations).stop);
}

TEST(EvaluationDecisionsTest, TheBestCheckpointComesFirst) {
  const job::Job job =
      JobWith("checkpoint { keep_best { metric: \"auc\" mode: MAX } }");
  EXPECT_THAT(DecideByEvaluations(job, Auc({.5, .7, kNan, .7, .6})).best_first,
              ElementsAre(20, 40, 50, 10));
  EXPECT_THAT(DecideByEvaluations(job, {}).best_first, IsEmpty());
}

// The rates are tf.keras.callbacks.ReduceLROnPlateau's.
TEST(EvaluationDecisionsTest, TheRateIsReducedOnAPlateau) {
  const std::string plateau =
      "optimizer { sgd { learning_rate: .5 } reduce_on_plateau { metric: "
      "\"auc\" mode: MAX factor: .1 min_delta: .01 ";
  const auto rate_after = [&](const std::string& fields,
                              const std::vector<double>& values) {
    return DecideByEvaluations(JobWith(plateau + fields + " } }"), Auc(values))
        .learning_rate.value_or(.5);
  };
  const std::string two = "patience: 2 cooldown: 0 min_rate: 0";
  EXPECT_DOUBLE_EQ(rate_after(two, {.5, .5}), .5);
  EXPECT_DOUBLE_EQ(rate_after(two, {.5, .5, .505}), .05);
  EXPECT_DOUBLE_EQ(rate_after(two, {.5, .5, .5, .5}), .05);
  EXPECT_DOUBLE_EQ(rate_after(two, {.5, .5, .5, .5, .5}), .005);
  EXPECT_DOUBLE_EQ(rate_after(two, {.5, .5, .6, .6}), .5);
  // While cooling down evaluations don't count.
  const std::string cooling = "patience: 2 cooldown: 2 min_rate: 0";
  EXPECT_DOUBLE_EQ(rate_after(cooling, {.5, .5, .5, .5, .5}), .05);
  EXPECT_DOUBLE_EQ(rate_after(cooling, {.5, .5, .5, .5, .5, .5}), .005);
  EXPECT_DOUBLE_EQ(
      rate_after("patience: 1 cooldown: 0 min_rate: .2", {.5, .5, .5, .5}), .2);
}

}  // namespace
}  // namespace parasol
