#include "ml/input/epoch_batches.h"

#include "gtest/gtest.h"

namespace parasol {
namespace {

TEST(EpochBatches, TheLastBatchOfAnEpochCounts) {
  EXPECT_EQ(BatchesOf(2000, 128), 16);
  EXPECT_EQ(BatchesOf(2048, 128), 16);
  EXPECT_EQ(BatchesOf(2049, 128), 17);
  EXPECT_EQ(BatchesOf(1, 128), 1);
}

TEST(EpochBatches, BatchesHaveAllExamplesOfAnEpochAndNoMore) {
  EXPECT_EQ(ExamplesOfBatch(14, 2000, 128), 128);
  EXPECT_EQ(ExamplesOfBatch(15, 2000, 128), 80);
  EXPECT_EQ(ExamplesOfBatch(16, 2000, 128), 0);
  EXPECT_EQ(ExamplesOfBatch(20, 2000, 128), 0);
}

TEST(EpochBatches, WholeEpochsHaveAllTheirSteps) {
  EXPECT_EQ(StepsOfEpochs(3, 16), 48);
  EXPECT_EQ(StepsOfEpochs(1000000, 938), 938000000);
}

TEST(EpochBatches, AFractionIsRoundedUpToAStep) {
  EXPECT_EQ(StepsOfEpochs(0.5, 16), 8);
  EXPECT_EQ(StepsOfEpochs(0.5, 15), 8);
  EXPECT_EQ(StepsOfEpochs(0.001, 16), 1);
  // 11.000000000000002 as doubles multiply.
  EXPECT_EQ(StepsOfEpochs(1.1, 10), 11);
}

TEST(EpochBatches, MoreStepsThanCanBeCountedAreVeryMany) {
  EXPECT_GT(StepsOfEpochs(1e300, 16), int64_t{1} << 50);
}

}  // namespace
}  // namespace parasol
