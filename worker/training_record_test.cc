#include "worker/training_record.h"

#include <limits>
#include <optional>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using testing::HasSubstr;

class TrainingRecordTest : public testing::Test {
 protected:
  TrainingRecord Record(job::WorkerSettings::NonFiniteLoss non_finite_loss =
                            job::WorkerSettings::STOP) {
    return TrainingRecord(non_finite_loss, CurvePoints(10, /*every_steps=*/0),
                          clock_, metrics_, reporter_);
  }

  SimulatedClock clock_;
  MetricsRegistry registry_;
  WorkerMetrics metrics_{registry_};
  TrainingReporter reporter_{clock_};
};

TEST_F(TrainingRecordTest, APassIsInTheMetricsAndInTheReport) {
  TrainingRecord record = Record();
  const absl::Time start = clock_.Now();
  clock_.Advance(absl::Seconds(3));
  record.ChargePass(start);
  ASSERT_OK(record.AddResult({.examples = 4, .loss_sum = 2}, /*number=*/20));
  record.AddStep();
  const TrainingReport report = reporter_.Take();
  EXPECT_EQ(report.steps, 1);
  EXPECT_EQ(report.examples, 4);
  EXPECT_EQ(report.loss_sum, 2);
  EXPECT_EQ(report.epochs.at(2).examples, 4);
  EXPECT_EQ(report.wait_ratio, 0);
  const std::string text = registry_.Text();
  EXPECT_THAT(text, HasSubstr("parasol_worker_compute_seconds_total 3"));
  EXPECT_THAT(text, HasSubstr("parasol_worker_examples_total 4"));
  EXPECT_THAT(text, HasSubstr("parasol_worker_loss 0.5"));
  EXPECT_THAT(text, HasSubstr("parasol_worker_steps_total 1"));
}

TEST_F(TrainingRecordTest, AWaitIsChargedToItsCounterOnly) {
  TrainingRecord record = Record();
  const absl::Time start = clock_.Now();
  clock_.Advance(absl::Seconds(2));
  record.Charge(metrics_.wait_pull_seconds, start);
  EXPECT_EQ(reporter_.Take().wait_ratio, std::nullopt);
  const std::string text = registry_.Text();
  EXPECT_THAT(text, HasSubstr("parasol_worker_wait_pull_seconds_total 2"));
  EXPECT_THAT(text, HasSubstr("parasol_worker_compute_seconds_total 0"));
}

TEST_F(TrainingRecordTest, ALossThatIsNotFiniteEndsTheJobUnlessItSaysNot) {
  for (const double loss : {std::numeric_limits<double>::infinity(),
                            std::numeric_limits<double>::quiet_NaN()}) {
    const BatchResult result = {.examples = 1, .loss_sum = loss};
    EXPECT_THAT(
        Record(job::WorkerSettings::STOP).AddResult(result, 0),
        StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("the loss is ")));
    EXPECT_OK(Record(job::WorkerSettings::CONTINUE).AddResult(result, 0));
  }
}

}  // namespace
}  // namespace parasol
