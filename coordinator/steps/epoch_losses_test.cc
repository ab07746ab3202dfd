#include "coordinator/steps/epoch_losses.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::IsEmpty;

absl::Time At(double seconds) {
  return absl::UnixEpoch() + absl::Seconds(seconds);
}

// A training of epochs of 10 steps, with 40 examples.
class EpochLossesTest : public testing::Test {
 protected:
  void Reach(int64_t step, double seconds) {
    losses_.Reach(step, CurvePoints(10, 0), 40, At(seconds));
  }
  const EpochLosses::End& end(size_t i) { return losses_.ends().at(i); }

  EpochLosses losses_{0};
};

TEST_F(EpochLossesTest, ReportsCountInTheEpochsOfTheirExamples) {
  Reach(0, 0);
  losses_.Add(0, {.loss_sum = 10, .examples = 20});
  Reach(9, 1);
  EXPECT_THAT(losses_.ends(), IsEmpty());
  // Two epochs end before any of the rest is reported.
  Reach(20, 2);
  ASSERT_EQ(losses_.ends().size(), 2);
  EXPECT_FALSE(end(0).is_complete);
  losses_.Add(1, {.loss_sum = 4, .examples = 40});
  losses_.Add(0, {.loss_sum = 30, .examples = 20});
  Reach(20, 3);
  EXPECT_TRUE(end(0).is_complete);
  EXPECT_EQ(end(0).step, 10);
  EXPECT_EQ(end(0).time, At(2));
  EXPECT_EQ(end(0).sums.loss_sum, 40);
  EXPECT_EQ(end(0).sums.examples, 40);
  EXPECT_TRUE(end(1).is_complete);
  EXPECT_EQ(end(1).sums.loss_sum, 44);
  EXPECT_EQ(end(1).sums.examples, 80);
}

TEST_F(EpochLossesTest, AnEpochWaitsBoundedlyAndForTheOnesBeforeIt) {
  losses_.Add(0, {.loss_sum = 10, .examples = 20});
  losses_.Add(1, {.loss_sum = 4, .examples = 40});
  Reach(10, 5);
  Reach(20, 6);
  EXPECT_FALSE(end(1).is_complete) << "it comes behind epoch 0";
  EXPECT_EQ(end(1).sums.loss_sum, 14) << "what is known";
  Reach(20, 7);
  EXPECT_TRUE(end(0).is_complete);
  EXPECT_TRUE(end(1).is_complete);
  // Too late.
  losses_.Add(0, {.loss_sum = 99, .examples = 20});
  Reach(20, 8);
  EXPECT_EQ(end(1).sums.loss_sum, 14);
}

TEST_F(EpochLossesTest, ARunThatGoesOnWithinAnEpochHasThePartSinceThen) {
  EpochLosses resumed(25);
  resumed.Reach(25, CurvePoints(10, 0), 40, At(0));
  resumed.Add(2, {.loss_sum = 5, .examples = 20});
  resumed.Reach(30, CurvePoints(10, 0), 40, At(1));
  ASSERT_EQ(resumed.ends().size(), 1);
  EXPECT_EQ(resumed.ends()[0].step, 30);
  EXPECT_FALSE(resumed.ends()[0].is_complete) << "nobody knows how many it has";
  resumed.Reach(30, CurvePoints(10, 0), 40, At(3));
  EXPECT_TRUE(resumed.ends()[0].is_complete);
  EXPECT_EQ(resumed.ends()[0].sums.examples, 20);
}

// Restarts the chief at the end of an epoch: it takes the epoch for seen.
TEST_F(EpochLossesTest, StepsThatWorkersBringAreNotSeen) {
  EpochLosses resumed(20);
  resumed.Reach(27, CurvePoints(10, 0), 40, At(0));
  EXPECT_EQ(resumed.seen_from(), 27);
  resumed.Reach(30, CurvePoints(10, 0), 40, At(1));
  ASSERT_EQ(resumed.ends().size(), 1);
  EXPECT_EQ(resumed.ends()[0].seen_from, 27);
  // A worker comes late, behind that epoch's end, and before it is complete.
  resumed.Miss();
  resumed.Reach(34, CurvePoints(10, 0), 40, At(1));
  EXPECT_EQ(resumed.ends()[0].seen_from, 30) << "nothing of it";
  resumed.Reach(40, CurvePoints(10, 0), 40, At(9));
  EXPECT_EQ(resumed.ends()[1].seen_from, 34);
  // What is complete stays what it is.
  resumed.Miss();
  resumed.Reach(41, CurvePoints(10, 0), 40, At(12));
  EXPECT_TRUE(resumed.ends()[0].is_complete);
  EXPECT_EQ(resumed.ends()[0].seen_from, 30);
}

TEST_F(EpochLossesTest, ARunWithoutStepsForAnotherChiefIsSeenFromItsStart) {
  for (const int64_t first : {0, 20, 25}) {
    EpochLosses losses(first);
    losses.Reach(first, CurvePoints(), std::nullopt, At(0));
    losses.Reach(30, CurvePoints(10, 0), 40, At(1));
    EXPECT_EQ(losses.seen_from(), first);
    EXPECT_EQ(losses.ends().back().seen_from, first);
  }
}

TEST_F(EpochLossesTest, TheNewestEndsAreKept) {
  losses_.Add(0, {.loss_sum = 5, .examples = 40});
  Reach(10 * (EpochLosses::kMaxEnds + 1), 1);
  ASSERT_EQ(losses_.ends().size(), EpochLosses::kMaxEnds);
  EXPECT_EQ(end(0).step, 20);
  EXPECT_EQ(end(0).sums.loss_sum, 5) << "those before it are part of the sums";
  EXPECT_FALSE(losses_.IsOpen(0));
  EXPECT_TRUE(losses_.IsOpen(1));
  EXPECT_FALSE(losses_.IsOpen(1 + EpochLosses::kMaxAhead));
}

// More epochs between two heartbeats than ends are kept.
TEST_F(EpochLossesTest, ReportsOfEndsThatAreNotKeptCount) {
  Reach(10 * (EpochLosses::kMaxEnds + 8), 1);
  for (size_t epoch = 0; epoch < EpochLosses::kMaxEnds + 8; ++epoch) {
    losses_.Add(epoch, {.loss_sum = 1, .examples = 40});
  }
  Reach(10 * (EpochLosses::kMaxEnds + 8), 2);
  EXPECT_EQ(end(0).sums.loss_sum, 9) << "the eight before it, and its own";
  EXPECT_EQ(losses_.ends().back().sums.examples,
            40 * (EpochLosses::kMaxEnds + 8));
  EXPECT_TRUE(losses_.ends().back().is_complete);
}

// Parts of 4 or 2 steps: 4, 8, 10, 14, …
TEST(EpochLossesOfPartsTest, APartIsCompleteWhenWorkersHaveHadTheTime) {
  EpochLosses losses(0);
  const CurvePoints points(10, 4);
  losses.Reach(0, points, 40, At(0));
  losses.Add(0, {8, 16, {1, 2}});
  losses.Add(1, {4, 16, {1, 1}});
  losses.Reach(9, points, 40, At(1));
  ASSERT_THAT(losses.ends(), testing::SizeIs(2));
  EXPECT_EQ(losses.ends()[1].step, 8);
  EXPECT_FALSE(losses.ends()[0].is_complete) << "nobody knows of how many";
  losses.Reach(10, points, 40, At(3));
  ASSERT_THAT(losses.ends(), testing::SizeIs(3));
  EXPECT_TRUE(losses.ends()[0].is_complete);
  EXPECT_TRUE(losses.ends()[1].is_complete);
  EXPECT_FALSE(losses.ends()[2].is_complete);
  EXPECT_EQ(losses.ends()[0].sums.loss_sum, 8);
  EXPECT_EQ(losses.ends()[1].sums.loss_sum, 12);
  EXPECT_THAT(losses.ends()[1].sums.output_loss_sums,
              testing::ElementsAre(2, 3));
  EXPECT_EQ(losses.Total().examples, 32);
}

TEST(EpochLossesOfPartsTest, ARunThatIsResumedBeginsWithinAPart) {
  EpochLosses losses(9);
  const CurvePoints points(10, 4);
  losses.Reach(9, points, 40, At(0));
  losses.Add(2, {1, 4});
  losses.Add(1, {100, 400});  // ended before
  losses.Reach(12, points, 40, At(1));
  losses.Reach(12, points, 40, At(4));
  ASSERT_THAT(losses.ends(), testing::SizeIs(2));
  EXPECT_EQ(losses.ends()[0].step, 10);
  EXPECT_EQ(losses.ends()[0].sums.loss_sum, 1);
  EXPECT_EQ(losses.ends()[1].step, 12);
}

}  // namespace
}  // namespace parasol
