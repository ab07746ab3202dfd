#include "coordinator/shards/leaving_ps.h"

#include "gtest/gtest.h"

namespace parasol {
namespace {

constexpr absl::Time kNow = absl::FromUnixSeconds(1000);

TEST(LeavingPsTest, ACheckpointOrderedAfterItWasAskedForLetsThePsLeave) {
  LeavingPs leaving;
  leaving.Ask(7, kNow);
  EXPECT_TRUE(leaving.NeedCheckpoint());
  leaving.Ordered();
  EXPECT_FALSE(leaving.NeedCheckpoint());
  EXPECT_FALSE(leaving.MayLeave(7));
  leaving.Ask(7, kNow);
  leaving.Done(/*is_written=*/true);
  EXPECT_TRUE(leaving.MayLeave(7));
  EXPECT_FALSE(leaving.NeedCheckpoint());
}

TEST(LeavingPsTest, ACheckpointOrderedBeforeItWasAskedForDoesNotCount) {
  LeavingPs leaving;
  leaving.Ordered();
  leaving.Ask(7, kNow);
  leaving.Done(/*is_written=*/true);
  EXPECT_FALSE(leaving.MayLeave(7));
  EXPECT_TRUE(leaving.NeedCheckpoint());
}

TEST(LeavingPsTest, ACheckpointThatFailedIsNeededAgain) {
  LeavingPs leaving;
  leaving.Ask(7, kNow);
  leaving.Ordered();
  leaving.Done(/*is_written=*/false);
  EXPECT_FALSE(leaving.MayLeave(7));
  EXPECT_TRUE(leaving.NeedCheckpoint());
}

TEST(LeavingPsTest, OneCheckpointServesAllThatHaveAsked) {
  LeavingPs leaving;
  leaving.Ask(7, kNow);
  leaving.Ask(8, kNow);
  leaving.Ordered();
  leaving.Done(/*is_written=*/true);
  EXPECT_TRUE(leaving.MayLeave(7));
  EXPECT_TRUE(leaving.MayLeave(8));
  EXPECT_FALSE(leaving.MayLeave(9));
}

TEST(LeavingPsTest, APsThatHasGoneNeedsNoCheckpoint) {
  LeavingPs leaving;
  leaving.Ask(7, kNow);
  leaving.Forget(7);
  EXPECT_FALSE(leaving.NeedCheckpoint());
  EXPECT_FALSE(leaving.MayLeave(7));
}

TEST(LeavingPsTest, OneThatAsksBehindTheOrderLeavesWhenItStays) {
  LeavingPs leaving;
  EXPECT_FALSE(leaving.IsAnyLeaving());
  leaving.Ask(7, kNow);
  leaving.Ordered();
  leaving.Ask(8, kNow);
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
  leaving.Ask(7, kNow);
  leaving.Ordered();
  leaving.Done(true);
  leaving.Stay({7, 8});
  EXPECT_FALSE(leaving.Ask(8, kNow));
  EXPECT_TRUE(leaving.MayLeave(8));
  EXPECT_FALSE(leaving.NeedCheckpoint());
}

TEST(LeavingPsTest, ASuccessorDoesNotStay) {
  LeavingPs leaving;
  leaving.Stay({7, 8});
  EXPECT_TRUE(leaving.Ask(9, kNow));
  EXPECT_FALSE(leaving.MayLeave(9));
  EXPECT_TRUE(leaving.NeedCheckpoint());
}

TEST(LeavingPsTest, NobodyStaysBehindTheEndOfAStay) {
  LeavingPs leaving;
  leaving.Stay({7, 8});
  EXPECT_TRUE(leaving.IsStay());
  leaving.EndStay();
  EXPECT_FALSE(leaving.IsStay());
  EXPECT_TRUE(leaving.Ask(7, kNow));
  EXPECT_TRUE(leaving.NeedCheckpoint());
}

TEST(LeavingPsTest, TheCheckpointWaitsForOthersThatAreToldToEnd) {
  LeavingPs leaving;
  EXPECT_FALSE(leaving.IsCheckpointDue(kNow));
  leaving.Ask(7, kNow);
  EXPECT_FALSE(leaving.IsCheckpointDue(kNow));
  EXPECT_TRUE(leaving.IsCheckpointDue(kNow + kLeaveDelay));
  leaving.Ask(7, kNow + kLeaveDelay);
  EXPECT_TRUE(leaving.IsCheckpointDue(kNow + kLeaveDelay)) << "it asks again";
  leaving.Ask(8, kNow + kLeaveDelay);
  EXPECT_FALSE(leaving.IsCheckpointDue(kNow + kLeaveDelay));
  leaving.Ordered();
  EXPECT_FALSE(leaving.IsCheckpointDue(kNow + absl::Minutes(1)));
}

TEST(LeavingPsTest, APsThatAsksIsAboutToGoForAMoment) {
  LeavingPs leaving;
  EXPECT_FALSE(leaving.IsAnyGoing(kNow));
  leaving.Ask(7, kNow);
  EXPECT_TRUE(leaving.IsAnyGoing(kNow));
  EXPECT_FALSE(leaving.IsAnyGoing(kNow + kDepartureLimit));
  leaving.Forget(7);
  EXPECT_FALSE(leaving.IsAnyGoing(kNow));
}

}  // namespace
}  // namespace parasol
