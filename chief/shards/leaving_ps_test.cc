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

TEST(LeavingPsTest, OneThatAsksBehindTheOrderLeavesWhenItStays) {
  LeavingPs leaving;
  EXPECT_FALSE(leaving.IsAnyLeaving());
  leaving.Ask(7);
  leaving.Ordered();
  leaving.Ask(8);
  leaving.Done(true);
  leaving.Stay({7, 8});
  EXPECT_TRUE(leaving.MayLeave(7));
  EXPECT_TRUE(leaving.MayLeave(8));
  EXPECT_FALSE(leaving.NeedCheckpoint());
  EXPECT_TRUE(leaving.IsAnyLeaving());
  leaving.Forget(7);
  leaving.Forget(8);
  EXPECT_FALSE(leaving.IsAnyLeaving());
}

TEST(LeavingPsTest, OneThatAsksBehindTheStayNeedsNoOther) {
  LeavingPs leaving;
  leaving.Ask(7);
  leaving.Ordered();
  leaving.Done(true);
  leaving.Stay({7, 8});
  EXPECT_FALSE(leaving.Ask(8));
  EXPECT_TRUE(leaving.MayLeave(8));
  EXPECT_FALSE(leaving.NeedCheckpoint());
}

TEST(LeavingPsTest, ASuccessorDoesNotStay) {
  LeavingPs leaving;
  leaving.Stay({7, 8});
  EXPECT_TRUE(leaving.Ask(9));
  EXPECT_FALSE(leaving.MayLeave(9));
  EXPECT_TRUE(leaving.NeedCheckpoint());
}

TEST(LeavingPsTest, NobodyStaysBehindTheEndOfAStay) {
  LeavingPs leaving;
  leaving.Stay({7, 8});
  EXPECT_TRUE(leaving.IsStay());
  leaving.EndStay();
  EXPECT_FALSE(leaving.IsStay());
  EXPECT_TRUE(leaving.Ask(7));
  EXPECT_TRUE(leaving.NeedCheckpoint());
}

}  // namespace
}  // namespace parasol
