#include "chief/shards/leaving_ps.h"

#include "gtest/gtest.h"

namespace parasol {
namespace {

TEST(LeavingPsTest, ACheckpointOrderedAfterItWasAskedForLetsThePsLeave) {
  LeavingPs leaving;
  leaving.Ask(7);
  EXPECT_TRUE(leaving.NeedCheckpoint());
  leaving.Ordered();
  EXPECT_FALSE(leaving.NeedCheckpoint());
  EXPECT_FALSE(leaving.MayLeave(7));
  leaving.Ask(7);
  leaving.Done(/*is_written=*/true);
  EXPECT_TRUE(leaving.MayLeave(7));
  EXPECT_FALSE(leaving.NeedCheckpoint());
}

TEST(LeavingPsTest, ACheckpointOrderedBeforeItWasAskedForDoesNotCount) {
  LeavingPs leaving;
  leaving.Ordered();
  leaving.Ask(7);
  leaving.Done(/*is_written=*/true);
  EXPECT_FALSE(leaving.MayLeave(7));
  EXPECT_TRUE(leaving.NeedCheckpoint());
}

TEST(LeavingPsTest, ACheckpointThatFailedIsNeededAgain) {
  LeavingPs leaving;
  leaving.Ask(7);
  leaving.Ordered();
  leaving.Done(/*is_written=*/false);
  EXPECT_FALSE(leaving.MayLeave(7));
  EXPECT_TRUE(leaving.NeedCheckpoint());
}

TEST(LeavingPsTest, OneCheckpointServesAllThatHaveAsked) {
  LeavingPs leaving;
  leaving.Ask(7);
  leaving.Ask(8);
  leaving.Ordered();
  leaving.Done(/*is_written=*/true);
  EXPECT_TRUE(leaving.MayLeave(7));
  EXPECT_TRUE(leaving.MayLeave(8));
  EXPECT_FALSE(leaving.MayLeave(9));
}

TEST(LeavingPsTest, APsThatHasGoneNeedsNoCheckpoint) {
  LeavingPs leaving;
  leaving.Ask(7);
  leaving.Forget(7);
  EXPECT_FALSE(leaving.NeedCheckpoint());
  EXPECT_FALSE(leaving.MayLeave(7));
}

TEST(LeavingPsTest, OneThatAsksBehindTheOrderLeavesWhenAllShardsStay) {
  LeavingPs leaving;
  EXPECT_FALSE(leaving.IsAnyLeaving());
  leaving.Ask(7);
  leaving.Ordered();
  leaving.Ask(8);
  leaving.Done(true);
  leaving.AllWritten();
  EXPECT_TRUE(leaving.MayLeave(7));
  EXPECT_TRUE(leaving.MayLeave(8));
  EXPECT_FALSE(leaving.NeedCheckpoint());
  EXPECT_TRUE(leaving.IsAnyLeaving());
  leaving.Forget(7);
  leaving.Forget(8);
  EXPECT_FALSE(leaving.IsAnyLeaving());
}

}  // namespace
}  // namespace parasol
