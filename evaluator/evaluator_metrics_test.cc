#include "evaluator/evaluator_metrics.h"

#include <limits>
#include <string>

#include "base/metrics.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(EvaluatorMetricsTest, EachMetricHasAGaugeOnceItHasAValue) {
  MetricsRegistry registry;
  EvaluatorMetrics metrics(registry);
  EXPECT_THAT(registry.Text(), Not(HasSubstr("accuracy")));

  metrics.SetResults({{"accuracy", 0.5},
                      {"auc", std::numeric_limits<double>::quiet_NaN()},
                      {"log_loss", 0.25},
                      {"root_mean_squared_error", 1.5},
                      {"mean_absolute_error", 1.25},
                      {"mean_prediction", 3},
                      {"mean_label", 4}});
  EXPECT_THAT(registry.Text(),
              AllOf(HasSubstr("\nparasol_evaluator_accuracy_ratio 0.5\n"),
                    HasSubstr("\nparasol_evaluator_auc_ratio Nan\n"),
                    HasSubstr("\nparasol_evaluator_log_loss 0.25\n"),
                    HasSubstr("\nparasol_evaluator_root_mean_squared_error "
                              "1.5\n"),
                    HasSubstr("\nparasol_evaluator_mean_absolute_error "
                              "1.25\n"),
                    HasSubstr("\nparasol_evaluator_mean_prediction 3\n"),
                    HasSubstr("\nparasol_evaluator_mean_label 4\n")));
}

TEST(EvaluatorMetricsTest, AMetricWithANumberHasANameThatPrometheusAllows) {
  MetricsRegistry registry;
  EvaluatorMetrics metrics(registry);
  metrics.SetResults({{"recall_at_0.9", 0.5},
                      {"f1_at_1e-05", 0.25},
                      {"top_5_accuracy", 1},
                      {"r_squared", 0.125}});
  EXPECT_THAT(registry.Text(),
              AllOf(HasSubstr("\nparasol_evaluator_recall_at_0_9_ratio 0.5\n"),
                    HasSubstr("\nparasol_evaluator_f1_at_1e_05_ratio 0.25\n"),
                    HasSubstr("\nparasol_evaluator_top_5_accuracy_ratio 1\n"),
                    HasSubstr("\nparasol_evaluator_r_squared 0.125\n")));
}

TEST(EvaluatorMetricsTest, NamesThatWouldBeEqualHaveNumbers) {
  MetricsRegistry registry;
  EvaluatorMetrics metrics(registry);
  for (const double value : {1.0, 2.0}) {
    metrics.SetResults({{"a/b_share", value},
                        {"a_b/share", value + .25},
                        {"a/b.share", value + .5},
                        {"quantile(share=0.9)", value},
                        {"quantile(share=0-9)", value + .25}});
  }
  EXPECT_THAT(
      registry.Text(),
      AllOf(HasSubstr("\nparasol_evaluator_a_b_share 2\n"),
            HasSubstr("\nparasol_evaluator_a_b_share_2 2.25\n"),
            HasSubstr("\nparasol_evaluator_a_b_share_3 2.5\n"),
            HasSubstr("\nparasol_evaluator_quantile_share_0_9 2\n"),
            HasSubstr("\nparasol_evaluator_quantile_share_0_9_2 2.25\n"),
            HasSubstr("The job's metric a_b/share of"),
            HasSubstr("The job's metric a/b.share of")));
}

// A gauge of a counter's name would end the process.
TEST(EvaluatorMetricsTest, AResultNeverHasTheNameOfAnotherMetric) {
  MetricsRegistry registry;
  EvaluatorMetrics metrics(registry);
  metrics.loss.Set(7);
  metrics.SetResults({{"evaluations_total", 1},
                      {"loss", 2},
                      {"evaluation_duration_seconds", 3},
                      {"evaluation_duration_seconds_count", 4}});
  EXPECT_THAT(
      registry.Text(),
      AllOf(
          HasSubstr("\nparasol_evaluator_evaluations_total 0\n"),
          HasSubstr("\nparasol_evaluator_evaluations_total_2 1\n"),
          HasSubstr("\nparasol_evaluator_loss 7\n"),
          HasSubstr("\nparasol_evaluator_loss_2 2\n"),
          HasSubstr("\nparasol_evaluator_evaluation_duration_seconds_2 3\n"),
          HasSubstr(
              "\nparasol_evaluator_evaluation_duration_seconds_count_2 4\n")));
}

TEST(EvaluatorMetricsTest, TheLastResultCounts) {
  MetricsRegistry registry;
  EvaluatorMetrics metrics(registry);
  metrics.SetResults({{"accuracy", 0.5}});
  metrics.SetResults({{"accuracy", 0.75}});

  EXPECT_THAT(registry.Text(),
              HasSubstr("\nparasol_evaluator_accuracy_ratio 0.75\n"));
}

}  // namespace
}  // namespace parasol
