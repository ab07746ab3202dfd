#include "deploy/local/evaluation_line.h"

#include <cmath>

#include "gtest/gtest.h"

namespace parasol {
namespace {

TEST(EvaluationLineTest, LastCompleteLineCounts) {
  const auto last = LastEvaluationLine(
      "{\"global_step\":100,\"accuracy\":0.5,\"loss\":1.5,\"examples\":9}\n"
      "{\"global_step\":200,\"accuracy\":0.75,\"loss\":0.5,\"examples\":9}\n"
      "{\"global_step\":300,\"accuracy\":0.8");
  EXPECT_EQ(last, (EvaluationLine{200, {{"accuracy", 0.75}}, 0.5}));
}

TEST(EvaluationLineTest, WhatSaysWhichCheckpointItIsIsNoMetric) {
  const auto last = LastEvaluationLine(
      "{\"global_step\":100,\"loss\":1.5,\"examples\":9,\"seconds\":0.5,"
      "\"checkpoint\":\"/c\",\"final\":true,\"run_id\":\"a\","
      "\"chief_epoch\":7}\n");
  EXPECT_EQ(last, (EvaluationLine{100, {}, 1.5}));
}

TEST(EvaluationLineTest, LinesThatAreNoneAreSkipped) {
  const auto last = LastEvaluationLine(
      "{\"global_step\":100,\"accuracy\":0.5,\"loss\":1.5}\n"
      "not json\n[]\n7\n{\"global_step\":\"x\"}\n\n");
  EXPECT_EQ(last, (EvaluationLine{100, {{"accuracy", 0.5}}, 1.5}));
}

TEST(EvaluationLineTest, LossThatIsNotFiniteIsNull) {
  const auto last = LastEvaluationLine(
      "{\"global_step\":100,\"accuracy\":0.5,\"loss\":null}\n");
  ASSERT_TRUE(last.has_value());
  EXPECT_TRUE(std::isnan(last->loss));
}

TEST(EvaluationLineTest, EveryMetricIsReadInItsOrder) {
  const auto last = LastEvaluationLine(
      "{\"global_step\":7,\"mean_label\":3.5,\"auc\":0.9,\"loss\":2,"
      "\"examples\":9,\"seconds\":0.1,\"checkpoint\":\"/c\",\"final\":true}\n");
  EXPECT_EQ(last, (EvaluationLine{7, {{"mean_label", 3.5}, {"auc", 0.9}}, 2}));
}

TEST(EvaluationLineTest, AMetricThatIsUndefinedIsNull) {
  const auto last =
      LastEvaluationLine("{\"global_step\":7,\"auc\":null,\"loss\":2}\n");
  ASSERT_TRUE(last.has_value());
  ASSERT_EQ(last->metrics.size(), 1u);
  EXPECT_TRUE(std::isnan(last->metrics[0].second));
}

TEST(EvaluationLineTest, AccuracyIsShownInPercent) {
  EXPECT_EQ(MetricText("accuracy", 0.97254), "97.25 %");
  EXPECT_EQ(MetricText("auc", 0.90344), "0.9034");
}

TEST(EvaluationLineTest, NothingComesFromNothing) {
  EXPECT_EQ(LastEvaluationLine(""), std::nullopt);
  EXPECT_EQ(LastEvaluationLine("{\"global_step\":1,\"accuracy\":1,\"loss\":1}"),
            std::nullopt);
}

}  // namespace
}  // namespace parasol
