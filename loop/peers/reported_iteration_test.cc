#include "loop/peers/reported_iteration.h"

#include "base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ReportedIterationTest, IsAStepOfOneBatchWithItsExamples) {
  SimulatedClock clock;
  TrainingReporter reporter(clock);
  ReportIteration({.step = 1,
                   .examples = 8,
                   .loss_sum = 4,
                   .output_loss_sums = {1, 3},
                   .values = {{"reward", 7}}},
                  reporter);
  const TrainingReport report = reporter.Take();
  EXPECT_EQ(report.steps, 1);
  EXPECT_EQ(report.batches, 1);
  EXPECT_EQ(report.examples, 8);
  EXPECT_EQ(report.loss_sum, 4);
  EXPECT_THAT(report.output_loss_sums, ElementsAre(1, 3));
  EXPECT_EQ(report.recorded.count("reward"), 1);
}

// The pace of a worker is that of its batches.
TEST(ReportedIterationTest, WithoutExamplesIsABatchAllTheSame) {
  SimulatedClock clock;
  TrainingReporter reporter(clock);
  for (int i = 1; i <= 3; ++i) {
    ReportIteration({.step = i, .loss_sum = 5, .output_loss_sums = {5}},
                    reporter);
  }
  const TrainingReport report = reporter.Take();
  EXPECT_EQ(report.steps, 3);
  EXPECT_EQ(report.batches, 3);
  EXPECT_EQ(report.examples, 0);
  EXPECT_EQ(report.loss_sum, 0) << "the loss of nobody's example";
  EXPECT_THAT(report.output_loss_sums, IsEmpty());
}

}  // namespace
}  // namespace parasol
