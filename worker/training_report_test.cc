#include "worker/training_report.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "cluster/inspection/trace_recorder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;

class TrainingReporterTest : public testing::Test {
 protected:
  void Spend(StepPart part, absl::Duration time) {
    reporter_.Begin(part, clock_.Now());
    clock_.Advance(time);
    reporter_.End(clock_.Now());
  }

  SimulatedClock clock_;
  TrainingReporter reporter_{clock_};
};

TEST_F(TrainingReporterTest, WaitsForOthersAreNoWork) {
  clock_.Advance(absl::Minutes(1));  // for the cluster to be there
  EXPECT_EQ(reporter_.Take().times.WaitRatio(), std::nullopt);
  Spend(StepPart::kInput, absl::Seconds(1));
  Spend(StepPart::kCompute, absl::Seconds(3));
  Spend(StepPart::kPull, absl::Seconds(1));
  Spend(StepPart::kPush, absl::Seconds(2));
  Spend(StepPart::kWait, absl::Seconds(1));
  const TrainingReport report = reporter_.Take();
  EXPECT_EQ(report.work, absl::Seconds(4));
  EXPECT_DOUBLE_EQ(*report.times.WaitRatio(), .5);
}

TEST_F(TrainingReporterTest, AProcessThatStandsStillDoesNotWait) {
  Spend(StepPart::kCompute, absl::Seconds(1));
  Spend(StepPart::kPush, absl::Seconds(9));
  reporter_.AddStandstill(absl::Seconds(8));
  const TrainingReport report = reporter_.Take();
  EXPECT_EQ(report.work, absl::Seconds(9));
  EXPECT_DOUBLE_EQ(*report.times.WaitRatio(), .1);
}

TEST_F(TrainingReporterTest, APartThatIsNotOverCountsAsFarAsItHasCome) {
  reporter_.Begin(StepPart::kCompute, clock_.Now());
  for (int i = 0; i < 2; ++i) {
    clock_.Advance(absl::Seconds(1));
    EXPECT_EQ(reporter_.Take().times.of(StepPart::kCompute), absl::Seconds(1));
  }
  clock_.Advance(absl::Seconds(3));
  reporter_.End(clock_.Now());
  EXPECT_EQ(reporter_.Take().work, absl::Seconds(3));
}

TEST_F(TrainingReporterTest, ARateIsOverReportsWithoutExamples) {
  TrainingReport total;
  const auto rate_after = [&](int64_t examples) {
    Spend(StepPart::kCompute, absl::Seconds(1));
    if (examples > 0) reporter_.AddExamples(examples, 1);
    wire::HeartbeatRequest request;
    ReportTraining(reporter_.Take(), total, request);
    return request.examples_per_second();
  };
  // It has waited for ps before.
  clock_.Advance(absl::Seconds(9));
  wire::HeartbeatRequest nothing;
  ReportTraining(reporter_.Take(), total, nothing);
  EXPECT_EQ(rate_after(0), 0);
  EXPECT_EQ(rate_after(20), 10);
  EXPECT_EQ(rate_after(0), 0);
  EXPECT_EQ(rate_after(0), 0);
  EXPECT_EQ(rate_after(30), 10);
  EXPECT_EQ(rate_after(10), 10);
}

TEST_F(TrainingReporterTest, TotalsTravelInHeartbeats) {
  TrainingReport total;
  wire::HeartbeatRequest nothing;
  ReportTraining(reporter_.Take(), total, nothing);
  EXPECT_FALSE(nothing.has_totals());
  wire::HeartbeatRequest request;
  for (int i = 0; i < 2; ++i) {
    Spend(StepPart::kInput, absl::Seconds(1));
    Spend(StepPart::kCompute, absl::Seconds(2));
    Spend(StepPart::kPush, absl::Seconds(4));
    reporter_.AddStandstill(absl::Seconds(1));
    reporter_.AddExamples(4, 2);
    // A second device has done as much.
    TrainingReporter other(clock_);
    other.Begin(StepPart::kCompute, clock_.Now() - absl::Seconds(3));
    other.End(clock_.Now());
    other.AddExamples(4, 2);
    reporter_.AddWorkOf(other.Take());
    reporter_.AddStep();
    request.Clear();
    ReportTraining(reporter_.Take(), total, request);
  }
  EXPECT_EQ(request.totals().steps(), 2);
  EXPECT_EQ(request.totals().batches(), 4);
  EXPECT_EQ(request.totals().times().input().seconds(), 2);
  EXPECT_EQ(request.totals().times().compute().seconds(), 4);
  EXPECT_EQ(request.totals().times().push().seconds(), 8);
  EXPECT_EQ(request.totals().times().pull().seconds(), 0);
  EXPECT_EQ(request.totals().times().stood_still().seconds(), 2);
  EXPECT_EQ(request.totals().work().seconds(), 14);
}

TEST_F(TrainingReporterTest, SumsOfEpochsAreToldUntilTheyNoLongerChange) {
  TrainingReport total;
  const auto tell = [&] {
    wire::HeartbeatRequest request;
    ReportTraining(reporter_.Take(), total, request);
    return request;
  };
  reporter_.AddExamples(4, 2, {}, /*epoch=*/0);
  TrainingReporter other(clock_);
  other.AddExamples(4, 3, {}, /*epoch=*/0);
  other.AddExamples(4, 1, {}, /*epoch=*/1);
  reporter_.AddWorkOf(other.Take());
  for (int i = 0; i <= kRepeatedSums; ++i) {
    const wire::HeartbeatRequest request = tell();
    ASSERT_EQ(request.epoch_loss_size(), 2) << i;
    EXPECT_EQ(request.epoch_loss(0).epoch(), 0);
    EXPECT_EQ(request.epoch_loss(0).loss_sum(), 5);
    EXPECT_EQ(request.epoch_loss(0).examples(), 8);
  }
  // The newest one goes on.
  reporter_.AddExamples(4, 2, {}, /*epoch=*/1);
  const wire::HeartbeatRequest request = tell();
  ASSERT_EQ(request.epoch_loss_size(), 1);
  EXPECT_EQ(request.epoch_loss(0).epoch(), 1);
  EXPECT_EQ(request.epoch_loss(0).loss_sum(), 3);
}

TEST(TrainingTraceTest, ATraceHasStepsAndTheirParts) {
  SimulatedClock clock;
  TraceRecorder trace;
  TrainingReporter reporter(clock, /*hooks=*/nullptr, &trace, "training");
  const auto step = [&] {
    reporter.Begin(StepPart::kInput, clock.Now());
    clock.Advance(absl::Seconds(1));
    reporter.End(clock.Now());
    reporter.Begin(StepPart::kCompute, clock.Now());
    clock.Advance(absl::Seconds(2));
    reporter.End(clock.Now());
    reporter.AddStep();
  };
  step();
  const absl::Time begin = clock.Now() + absl::Seconds(3);
  trace.Start({.begin = begin, .end = begin + absl::Hours(1), .steps = 1});
  step();
  step();
  step();
  std::vector<std::string> shown;
  for (const TraceRecorder::Span& span : trace.Take().spans) {
    EXPECT_EQ(span.track, "training");
    shown.push_back(absl::StrCat(span.name, " of ", *span.step, ": ",
                                 absl::FormatDuration(span.begin - begin),
                                 " to ",
                                 absl::FormatDuration(span.end - begin)));
  }
  EXPECT_THAT(shown,
              ElementsAre("compute of 1: -2s to 0", "input of 2: 0 to 1s",
                          "compute of 2: 1s to 3s", "step of 2: 0 to 3s"));
}

}  // namespace
}  // namespace parasol
