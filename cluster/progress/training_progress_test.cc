#include "cluster/progress/training_progress.h"

#include <cstdint>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

absl::Time At(double seconds) {
  return absl::UnixEpoch() + absl::Seconds(seconds);
}

// Returns the points of every `every_steps` steps (0: none) and
// `every_seconds`.
job::SummaryPolicy Every(int64_t every_steps, double every_seconds) {
  job::SummaryPolicy policy;
  if (every_steps > 0) policy.set_every_steps(every_steps);
  if (every_seconds > 0) policy.set_every_seconds(every_seconds);
  return policy;
}

// A job of 5 epochs of 10 steps, each with 4 examples of this loss.
TrainingSample AtStep(int64_t step, double loss = .5) {
  return {.global_step = step,
          .end_step = 50,
          .steps_per_epoch = 10,
          .loss_sum = 4 * loss * static_cast<double>(step),
          .examples = 4 * step,
          .learning_rate = .1};
}

TEST(TrainingProgressTest, ARecordIsTheMeanOfItsInterval) {
  TrainingProgress progress(Every(0, 10), absl::Seconds(100));
  EXPECT_FALSE(progress.Observe(AtStep(2), At(0)).record);
  EXPECT_FALSE(progress.Observe(AtStep(5), At(9.9)).record);
  TrainingSample sample = AtStep(6);
  sample.loss_sum = 4 * .5 * 2 + 16 * .25;
  const auto record = progress.Observe(sample, At(10)).record;
  ASSERT_TRUE(record);
  EXPECT_EQ(record->global_step, 6);
  EXPECT_EQ(record->loss, .25);
  EXPECT_EQ(record->epoch, .6);
  EXPECT_EQ(record->learning_rate, .1);
  EXPECT_EQ(record->examples_per_second, 1.6);
  EXPECT_EQ(record->elapsed, absl::Seconds(110));
  // Nothing was done.
  EXPECT_FALSE(progress.Observe(sample, At(30)).record);
  EXPECT_FALSE(progress.Observe(sample, At(31), /*is_end=*/true).record);
  EXPECT_EQ(
      progress.Observe(AtStep(7), At(31), /*is_end=*/true).record->elapsed,
      absl::Seconds(131));
}

TEST(TrainingProgressTest, ARecordHasTheMeansOfNamedOutputs) {
  TrainingProgress progress(Every(0, 10));
  progress.Observe(AtStep(2), At(0));  // none has reported yet
  TrainingSample sample = AtStep(6);
  sample.output_loss_sums = {16, 4};
  const auto first = progress.Observe(sample, At(10)).record;
  ASSERT_TRUE(first);
  EXPECT_THAT(first->output_losses, testing::ElementsAre(1, .25));
  sample = AtStep(8);
  sample.output_loss_sums = {32, 8};
  const auto second = progress.Observe(sample, At(20)).record;
  ASSERT_TRUE(second);
  EXPECT_THAT(second->output_losses, testing::ElementsAre(2, .5));
}

TEST(TrainingProgressTest, AnEpochEndsWithItsMeanLoss) {
  TrainingProgress progress(Every(0, 10));
  progress.Observe(AtStep(0), At(0));
  EXPECT_FALSE(progress.Observe(AtStep(9), At(3)).epoch_line);
  EXPECT_EQ(progress.Observe(AtStep(10), At(4)).epoch_line,
            "Epoch 1/5: loss 0.5000, 4.0 s, 10 examples/s");
  EXPECT_FALSE(progress.Observe(AtStep(19), At(5)).epoch_line);
  EXPECT_EQ(progress.Observe(AtStep(41), At(8)).epoch_line,
            "Epochs 2-4/5: loss 0.5000, 4.0 s, 31 examples/s");
}

TEST(TrainingProgressTest, AnEpochsNumbersAreFields) {
  TrainingProgress progress(Every(0, 10));
  progress.Observe(AtStep(0), At(0));
  EXPECT_EQ(
      progress.Observe(AtStep(10), At(4)).epoch_line.value().fields.json(),
      R"(,"step":10,"epoch":1,"loss":0.5,"examples_per_second":10,)"
      R"("seconds":4)");
}

TEST(TrainingProgressTest, APartOfAnEpochSaysFromWhichStep) {
  TrainingProgress progress(Every(0, 10));
  TrainingSample resumed = AtStep(24);
  resumed.examples = 0;
  resumed.loss_sum = 0;
  progress.Observe(resumed, At(0));
  TrainingSample sample = AtStep(30);
  sample.examples = 24;
  sample.loss_sum = 6;
  EXPECT_EQ(progress.Observe(sample, At(2)).epoch_line,
            "Epoch 3/5: loss 0.2500, 2.0 s, 12 examples/s, from step 24");
}

TEST(TrainingProgressTest, StepsThatOthersHaveMadeAreNotOfTheEpoch) {
  TrainingProgress progress(Every(0, 10));
  progress.Begin(AtStep(20), At(0));
  TrainingSample sample = AtStep(30);
  sample.seen_from = 27;
  const auto first = progress.Observe(sample, At(2));
  EXPECT_THAT(first.epoch_line.value().text, EndsWith(", from step 27"));
  EXPECT_EQ(first.record.value().from_step, 27);
  // Every later sample says it, too.
  sample = AtStep(40);
  sample.seen_from = 27;
  const auto second = progress.Observe(sample, At(4));
  EXPECT_THAT(second.epoch_line.value().text, Not(HasSubstr("from step")));
  EXPECT_EQ(second.record.value().from_step, 30);
}

// At an epoch's end as within it.
TEST(TrainingProgressTest, AnEpochOfWhichNothingWasSeenSaysSo) {
  TrainingProgress progress(Every(0, 10));
  progress.Begin(AtStep(20), At(0));
  TrainingSample sample = AtStep(30);
  sample.seen_from = 30;
  EXPECT_THAT(progress.Observe(sample, At(2)).epoch_line.value().text,
              EndsWith(", from step 30"));
}

TEST(TrainingProgressTest, WithoutReportsThereIsATime) {
  TrainingProgress progress(Every(0, 10));
  TrainingSample sample = AtStep(0);
  progress.Observe(sample, At(0));
  sample.global_step = 10;
  sample.end_step = 0;
  EXPECT_EQ(progress.Observe(sample, At(2)).epoch_line, "Epoch 1: 2.0 s");
  EXPECT_EQ(progress.Observe(sample, At(3), true).record->loss, std::nullopt);
}

TEST(TrainingProgressTest, ShortEpochsShareALineBehindTheFirstOnes) {
  TrainingProgress progress(Every(0, 10));
  progress.Begin({}, At(0));
  for (int epoch = 1; epoch <= TrainingProgress::kOwnLines; ++epoch) {
    EXPECT_TRUE(progress.EpochLine(AtStep(10 * epoch), At(.01 * epoch), false));
  }
  EXPECT_FALSE(progress.EpochLine(AtStep(100), At(.1), false)) << "known";
  EXPECT_FALSE(progress.EpochLine(AtStep(110), At(.15), false));
  EXPECT_THAT(progress.EpochLine(AtStep(120), At(.3), false).value().text,
              testing::StartsWith("Epochs 11-12/"));
  EXPECT_THAT(progress.EpochLine(AtStep(130), At(.31), true).value().text,
              testing::StartsWith("Epoch 13/"));
}

TEST(TrainingProgressTest, AStepThatFallsBeginsAnew) {
  TrainingProgress progress(Every(0, 10));
  progress.Observe(AtStep(20), At(0));
  EXPECT_FALSE(progress.Observe(AtStep(5), At(20)).record);
  EXPECT_EQ(progress.Observe(AtStep(6), At(30)).record->global_step, 6);
}

TEST(TrainingProgressTest, EachEpochHasItsRecord) {
  TrainingProgress progress(Every(0, 10));
  progress.Observe(AtStep(0), At(0));
  for (int64_t epoch = 1; epoch <= 5; ++epoch) {
    EXPECT_TRUE(progress.IsDue(10 * epoch, 10, At(.01 * epoch)));
    const auto record =
        progress.Observe(AtStep(10 * epoch), At(.01 * epoch)).record;
    ASSERT_TRUE(record);
    EXPECT_EQ(record->epoch, epoch);
    EXPECT_EQ(record->loss, .5);
    // Nothing was done since.
    EXPECT_FALSE(
        progress.Observe(AtStep(10 * epoch), At(1), epoch == 5).record);
  }
}

TEST(TrainingProgressTest, MultiplesOfEveryStepsHaveRecordsToo) {
  TrainingProgress progress(Every(4, 0));
  progress.Observe(AtStep(0), At(0));
  std::vector<int64_t> steps;
  for (int64_t step = 1; step <= 22; ++step) {
    const absl::Time now = At(100 * step);
    const bool is_due = progress.IsDue(step, 10, now);
    const auto record = progress.Observe(AtStep(step), now).record;
    EXPECT_EQ(is_due, record.has_value()) << step;
    if (record) steps.push_back(record->global_step);
  }
  EXPECT_THAT(steps, testing::ElementsAre(4, 8, 10, 12, 16, 20));
}

TEST(TrainingProgressTest, BehindManyRecordsShortEpochsShareOne) {
  TrainingProgress progress(Every(1, 0));
  progress.Observe(AtStep(0), At(0));
  const int64_t dense = TrainingProgress::kMaxDense;
  for (int64_t step = 1; step <= dense; ++step) {
    ASSERT_TRUE(progress.Observe(AtStep(step), At(0)).record) << step;
  }
  EXPECT_FALSE(progress.IsDue(dense + 1, 0, At(.9)));
  EXPECT_FALSE(progress.Observe(AtStep(dense + 1), At(.9)).record);
  EXPECT_TRUE(progress.IsDue(dense + 2, 0, At(1)));
  EXPECT_TRUE(progress.Observe(AtStep(dense + 2), At(1)).record);
}

TEST(TrainingProgressTest, IsDueAtTheFirstLookAtIntervalsAndEpochs) {
  TrainingProgress progress(Every(0, 10));
  EXPECT_TRUE(progress.IsDue(0, 10, At(0)));
  progress.Observe(AtStep(0), At(0));
  EXPECT_FALSE(progress.IsDue(9, 10, At(1)));
  EXPECT_TRUE(progress.IsDue(10, 10, At(1)));
  EXPECT_TRUE(progress.IsDue(10, 10, At(.1))) << "one of the first epochs";
  EXPECT_TRUE(progress.IsDue(110, 10, At(.1))) << "it has a record";
  EXPECT_FALSE(progress.IsDue(11, 10, At(1)));
  EXPECT_FALSE(progress.IsDue(10, 0, At(9)));
  EXPECT_TRUE(progress.IsDue(1, 10, At(10)));
}

}  // namespace
}  // namespace parasol
