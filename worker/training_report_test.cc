#include "worker/training_report.h"

#include "absl/time/time.h"
#include "base/clock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

class TrainingReporterTest : public testing::Test {
 protected:
  void Pass(absl::Duration length) {
    const absl::Time start = clock_.Now();
    clock_.Advance(length);
    reporter_.AddPass(start, clock_.Now());
  }

  SimulatedClock clock_;
  TrainingReporter reporter_{clock_};
};

TEST_F(TrainingReporterTest, WhatIsNotAPassIsWaiting) {
  clock_.Advance(absl::Minutes(1));  // for the cluster to be there
  Pass(absl::Seconds(3));
  clock_.Advance(absl::Seconds(1));
  Pass(absl::Seconds(4));
  EXPECT_DOUBLE_EQ(*reporter_.Take().wait_ratio, 1. / 8);
}

TEST_F(TrainingReporterTest, APassThatIsLongerThanTheReportsIsCountedOnce) {
  Pass(absl::Seconds(1));
  EXPECT_DOUBLE_EQ(*reporter_.Take().wait_ratio, 0);
  EXPECT_FALSE(reporter_.Take().wait_ratio.has_value());
  clock_.Advance(absl::Seconds(1));
  EXPECT_FALSE(reporter_.Take().wait_ratio.has_value());
  Pass(absl::Seconds(9));
  EXPECT_DOUBLE_EQ(*reporter_.Take().wait_ratio, .1);
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
  reporter_.AddExamplesOf(other.Take());
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

}  // namespace
}  // namespace parasol
