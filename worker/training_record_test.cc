#include "worker/training_record.h"

#include <limits>
#include <string>
#include <vector>

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
  {
    const TrainingRecord::Timed timed(record, StepPart::kCompute);
    clock_.Advance(absl::Seconds(3));
  }
  ASSERT_OK(record.AddResult({.examples = 4, .loss_sum = 2}, /*number=*/20));
  record.AddStep();
  const TrainingReport report = reporter_.Take();
  EXPECT_EQ(report.steps, 1);
  EXPECT_EQ(report.examples, 4);
  EXPECT_EQ(report.loss_sum, 2);
  EXPECT_EQ(report.epochs.at(2).examples, 4);
  EXPECT_EQ(report.batches, 1);
  EXPECT_EQ(report.work, absl::Seconds(3));
  const std::string text = registry_.Text();
  EXPECT_THAT(text, HasSubstr("parasol_worker_compute_seconds_total 3"));
  EXPECT_THAT(text, HasSubstr("parasol_worker_examples_total 4"));
  EXPECT_THAT(text, HasSubstr("parasol_worker_loss 0.5"));
  EXPECT_THAT(text, HasSubstr("parasol_worker_steps_total 1"));
}

TEST_F(TrainingRecordTest, EveryPartHasACounter) {
  TrainingRecord record = Record();
  int seconds = 0;
  for (const StepPart part :
       {StepPart::kInput, StepPart::kPull, StepPart::kCompute, StepPart::kPush,
        StepPart::kWait}) {
    const TrainingRecord::Timed timed(record, part);
    clock_.Advance(absl::Seconds(++seconds));
  }
  EXPECT_EQ(reporter_.Take().work, absl::Seconds(1 + 3));
  const std::string text = registry_.Text();
  EXPECT_THAT(text, HasSubstr("parasol_worker_wait_input_seconds_total 1"));
  EXPECT_THAT(text, HasSubstr("parasol_worker_wait_pull_seconds_total 2"));
  EXPECT_THAT(text, HasSubstr("parasol_worker_compute_seconds_total 3"));
  EXPECT_THAT(text, HasSubstr("parasol_worker_wait_push_seconds_total 4"));
  EXPECT_THAT(text, HasSubstr("parasol_worker_wait_steps_seconds_total 5"));
}

// Something that is there, or not, after a time.
class Late : public TrainingParameters::Pending {
 public:
  Late(SimulatedClock& clock, absl::Duration time, bool is_there)
      : clock_(clock), time_(time), is_there_(is_there) {}

  absl::Status Wait() override { return absl::OkStatus(); }
  bool WaitFor(absl::Duration) override {
    clock_.Advance(time_);
    return is_there_;
  }
  Outcome outcome() const override { return {}; }

 private:
  SimulatedClock& clock_;
  const absl::Duration time_;
  const bool is_there_;
};

TEST_F(TrainingRecordTest, AWaitThatIsTooLongIsAStandstill) {
  struct Case {
    absl::Duration took;
    absl::Duration stood_still;
  };
  for (const Case& c : std::vector<Case>{
           {absl::Milliseconds(3), absl::ZeroDuration()},
           {absl::Milliseconds(22), absl::ZeroDuration()},  // woken late
           {absl::Milliseconds(920), absl::Milliseconds(900)}}) {
    for (const bool is_there : {true, false}) {
      TrainingRecord record = Record();
      Late pending(clock_, c.took, is_there);
      EXPECT_EQ(record.WaitFor(pending, absl::Milliseconds(20)), is_there);
      const TrainingReport report = reporter_.Take();
      EXPECT_EQ(report.times.stood_still, c.stood_still);
      EXPECT_EQ(report.work, c.stood_still);
    }
  }
  EXPECT_THAT(registry_.Text(),
              HasSubstr("parasol_worker_stood_still_seconds_total 1.8"));
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
