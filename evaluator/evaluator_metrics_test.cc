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
