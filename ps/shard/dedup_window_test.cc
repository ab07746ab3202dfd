#include "ps/shard/dedup_window.h"

#include <random>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

TEST(DedupWindowTest, EachSequenceIsNewOnce) {
  DedupWindow window;
  for (uint64_t sequence = 1; sequence <= 5000; ++sequence) {
    ASSERT_EQ(window.Mark(sequence), Claim::kNew) << sequence;
    ASSERT_EQ(window.Mark(sequence), Claim::kDuplicate) << sequence;
  }
}

TEST(DedupWindowTest, AgreesWithASetForAnyOrderWithinTheWindow) {
  const int seed = 20261120;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  DedupWindow window;
  std::set<uint64_t> applied;
  uint64_t oldest_in_flight = 1;
  for (int i = 0; i < 20000; ++i) {
    const uint64_t sequence = oldest_in_flight + random() % kDedupWindow;
    const Claim want =
        applied.insert(sequence).second ? Claim::kNew : Claim::kDuplicate;
    ASSERT_EQ(window.Mark(sequence), want) << sequence;
    while (applied.contains(oldest_in_flight)) ++oldest_in_flight;
  }
}

TEST(DedupWindowTest, AJumpAheadKeepsTheNewestWindowAndDropsTheRest) {
  DedupWindow window;
  ASSERT_EQ(window.Mark(1), Claim::kNew);
  ASSERT_EQ(window.Mark(100), Claim::kNew);
  EXPECT_EQ(window.Mark(1100), Claim::kNew);
  EXPECT_EQ(window.Mark(1100 - kDedupWindow), Claim::kDuplicate);
  EXPECT_EQ(window.Mark(1100 - kDedupWindow + 1), Claim::kNew);
  EXPECT_EQ(window.Mark(100), Claim::kDuplicate);
}

TEST(DedupWindowTest, AJumpIsMoreThanAWindowAheadOfTheNewest) {
  DedupWindow window;
  EXPECT_FALSE(window.IsJump(kDedupWindow));
  EXPECT_TRUE(window.IsJump(kDedupWindow + 1));
  window.Mark(1);
  window.Mark(100);
  EXPECT_FALSE(window.IsJump(1)) << "old";
  EXPECT_FALSE(window.IsJump(100 + kDedupWindow));
  EXPECT_TRUE(window.IsJump(101 + kDedupWindow));
  EXPECT_TRUE(window.IsJump(UINT64_MAX));
}

TEST(DedupWindowTest, ReachesTheLastSequence) {
  DedupWindow window;
  EXPECT_EQ(window.Mark(UINT64_MAX), Claim::kNew);
  EXPECT_EQ(window.Mark(UINT64_MAX), Claim::kDuplicate);
  EXPECT_EQ(window.Mark(UINT64_MAX - 1), Claim::kNew);
  EXPECT_THAT(DedupWindow::Parse(window.Serialize()), IsOkAndHolds(window));
}

TEST(DedupWindowTest, SurvivesSerialisation) {
  DedupWindow window;
  for (const uint64_t sequence : {1, 2, 3, 7, 70, 1026, 1027}) {
    window.Mark(sequence);
  }
  EXPECT_THAT(DedupWindow::Parse(window.Serialize()), IsOkAndHolds(window));
}

TEST(DedupWindowTest, RefusesBytesThatItHasNotWritten) {
  const std::string good = DedupWindow().Serialize();
  std::string other_version = good;
  other_version[0] = 2;
  std::string low_floor = good;
  low_floor[1 + sizeof(uint64_t)] = 1;
  std::string over_the_end(good.size(), '\xff');
  over_the_end[0] = good[0];
  over_the_end[1 + sizeof(uint64_t)] = '\xfe';
  for (const std::string& bytes : {std::string(), good.substr(1), good + '\0',
                                   other_version, low_floor, over_the_end}) {
    EXPECT_THAT(DedupWindow::Parse(bytes),
                StatusIs(absl::StatusCode::kDataLoss));
  }
}

TEST(DedupWindowTest, WhatIsUnmarkedIsNewAgainAndNothingElse) {
  for (const uint64_t unmarked : {1, 2, 3, 5, 7}) {
    DedupWindow window;
    for (const uint64_t sequence : {1, 2, 3, 5, 7}) window.Mark(sequence);
    window.Unmark(unmarked);
    for (const uint64_t sequence : {1, 2, 3, 5, 7}) {
      EXPECT_EQ(window.Mark(sequence),
                sequence == unmarked ? Claim::kNew : Claim::kDuplicate)
          << sequence << " after " << unmarked;
    }
    EXPECT_EQ(window.Mark(4), Claim::kNew);
  }
}

TEST(DedupWindowTest, LacksWhatIsNotMarked) {
  DedupWindow window;
  EXPECT_EQ(window.Lacks(0), 0u);
  EXPECT_EQ(window.Lacks(3), 3u);
  for (const uint64_t sequence : {1, 2, 5}) window.Mark(sequence);
  EXPECT_EQ(window.Lacks(2), 0u);
  EXPECT_EQ(window.Lacks(5), 2u);
  EXPECT_EQ(window.Lacks(5000), 4997u);
}

TEST(DedupIndexTest, WhatASuccessorLacksIsCountedOnce) {
  DedupIndex lost;
  DedupWindow window;
  for (const uint64_t sequence : {1, 2, 4}) window.Mark(sequence);
  lost.Restore({{7, window}});
  ASSERT_OK(lost.Mark(7, 5, /*acknowledged=*/4));
  EXPECT_EQ(lost.TakeLost(7), 1u);
  lost.Confirm(7, 5);
  ASSERT_OK(lost.Mark(7, 6, /*acknowledged=*/5));
  EXPECT_EQ(lost.TakeLost(7), 0u);
  // Of this worker there is nothing at all.
  ASSERT_OK(lost.Mark(8, 3, /*acknowledged=*/2));
  EXPECT_EQ(lost.TakeLost(8), 2u);
}

TEST(DedupIndexTest, AGapIsCountedByOneSuccessor) {
  DedupIndex first;
  DedupWindow window;
  for (const uint64_t sequence : {1, 2, 5}) window.Mark(sequence);
  first.Restore({{7, window}});
  ASSERT_OK(first.Mark(7, 6, /*acknowledged=*/5));
  EXPECT_EQ(first.TakeLost(7), 2u);
  DedupIndex second;
  second.Restore(first.Windows());
  ASSERT_OK(second.Mark(7, 7, /*acknowledged=*/6));
  EXPECT_EQ(second.TakeLost(7), 0u);
}

// As the journal of a successor has it: 3 and 4 were lost, which it counted.
TEST(DedupIndexTest, AGapThatAReplayedPushHasPassedIsNotCountedAgain) {
  DedupIndex second;
  for (const auto& [sequence, acknowledged] :
       {std::pair<uint64_t, uint64_t>{1, 0}, {2, 1}, {5, 4}}) {
    EXPECT_THAT(second.Mark(7, sequence, acknowledged | DedupIndex::kReplayed),
                IsOkAndHolds(Claim::kNew));
    second.Confirm(7, sequence);
    EXPECT_EQ(second.TakeLost(7), 0u);
  }
  // What the journal lacks behind that counts.
  ASSERT_OK(second.Mark(7, 8, /*acknowledged=*/7));
  EXPECT_EQ(second.TakeLost(7), 2u);
}

TEST(DedupIndexTest, NothingIsLostOfAWorkerThatMayHaveBeenForgotten) {
  DedupIndex index(/*max_workers=*/1);
  ASSERT_OK(index.Mark(7, 1));
  index.Confirm(7, 1);
  ASSERT_OK(index.Mark(8, 1));
  index.Confirm(8, 1);
  ASSERT_OK(index.Mark(7, 2, /*acknowledged=*/1));
  EXPECT_EQ(index.TakeLost(7), 0u);
}

TEST(DedupIndexTest, AJournalMayHaveAJump) {
  DedupIndex index;
  for (const uint64_t sequence : {1, 5000, 5001}) {
    EXPECT_THAT(index.Mark(7, sequence, DedupIndex::kReplayed),
                IsOkAndHolds(Claim::kNew));
    index.Confirm(7, sequence);
  }
}

TEST(DedupIndexTest, BehindAJournalAWorkerMayJumpOnce) {
  DedupIndex index;
  ASSERT_OK(index.Mark(7, 1, DedupIndex::kReplayed));
  index.Confirm(7, 1);
  EXPECT_THAT(index.Mark(7, 5000, /*acknowledged=*/4999),
              IsOkAndHolds(Claim::kNew));
  EXPECT_EQ(index.TakeLost(7), 4998u);
  EXPECT_THAT(index.Mark(7, 9000),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(DedupIndexTest, RefusesNumbersThatMeanNobody) {
  DedupIndex index;
  EXPECT_THAT(index.Mark(0, 1), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(index.Mark(7, 0), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(DedupIndexTest, WorkersDoNotShareSequences) {
  DedupIndex index;
  EXPECT_THAT(index.Mark(7, 1), IsOkAndHolds(Claim::kNew));
  index.Confirm(7, 1);
  EXPECT_THAT(index.Mark(8, 1), IsOkAndHolds(Claim::kNew));
  EXPECT_THAT(index.Mark(7, 1), IsOkAndHolds(Claim::kDuplicate));
}

TEST(DedupIndexTest, ForgetsTheWorkerThatIsIdleLongest) {
  DedupIndex index(/*max_workers=*/2);
  ASSERT_OK(index.Mark(7, 1));
  ASSERT_OK(index.Mark(8, 1));
  ASSERT_OK(index.Mark(7, 2));
  index.Confirm(8, 1);
  index.Confirm(7, 2);
  ASSERT_OK(index.Mark(9, 1));
  EXPECT_THAT(index.Mark(7, 2), IsOkAndHolds(Claim::kDuplicate));
  EXPECT_THAT(index.Mark(8, 1), IsOkAndHolds(Claim::kNew));
}

TEST(DedupIndexTest, AClaimThatMayYetFailIsNoDuplicate) {
  DedupIndex index;
  ASSERT_THAT(index.Mark(7, 1), IsOkAndHolds(Claim::kNew));
  EXPECT_THAT(index.Mark(7, 1), IsOkAndHolds(Claim::kUnderWay));
  EXPECT_THAT(index.Mark(7, 2), IsOkAndHolds(Claim::kNew));
  index.Unmark(7, 1);
  ASSERT_THAT(index.Mark(7, 1), IsOkAndHolds(Claim::kNew));
  index.Confirm(7, 1);
  EXPECT_THAT(index.Mark(7, 1), IsOkAndHolds(Claim::kDuplicate));
}

TEST(DedupIndexTest, AWindowDoesNotJumpWhileItsWorkerPushes) {
  DedupIndex index;
  ASSERT_OK(index.Mark(7, 1));
  index.Confirm(7, 1);
  for (const uint64_t lie : {kDedupWindow + 2, uint64_t{1} << 63, UINT64_MAX}) {
    EXPECT_THAT(index.Mark(7, lie),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
  for (uint64_t sequence = 2; sequence < 3000; ++sequence) {
    ASSERT_THAT(index.Mark(7, sequence), IsOkAndHolds(Claim::kNew));
    index.Confirm(7, sequence);
  }
}

TEST(DedupIndexTest, ARefusedJumpDisplacesNobody) {
  DedupIndex index(/*max_workers=*/2);
  ASSERT_OK(index.Mark(7, 1));
  ASSERT_OK(index.Mark(8, 1));
  index.Confirm(7, 1);
  index.Confirm(8, 1);
  ASSERT_THAT(index.Mark(8, 5000),
              StatusIs(absl::StatusCode::kInvalidArgument));
  const DedupWindows windows = index.Windows();
  EXPECT_EQ(windows.size(), 2u);
  EXPECT_THAT(index.Mark(7, 1), IsOkAndHolds(Claim::kDuplicate));
}

// The process before it had acknowledged what the checkpoint lacks.
TEST(DedupIndexTest, TheFirstSequenceAfterARestoreMayJump) {
  DedupIndex before;
  ASSERT_OK(before.Mark(7, 1));
  before.Confirm(7, 1);
  DedupIndex after;
  after.Restore(before.Windows());
  EXPECT_THAT(after.Mark(7, 5000), IsOkAndHolds(Claim::kNew));
  EXPECT_THAT(after.Mark(7, 4500), IsOkAndHolds(Claim::kNew))
      << "of another lane";
  EXPECT_THAT(after.Mark(7, 5001 + kDedupWindow),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(after.Mark(9, 70000), IsOkAndHolds(Claim::kNew))
      << "a worker that the checkpoint does not know";
}

TEST(DedupIndexTest, RestoredWindowsStillKnowTheirDuplicates) {
  DedupIndex before;
  ASSERT_OK(before.Mark(7, 1));
  before.Confirm(7, 1);
  DedupIndex after;
  after.Restore(before.Windows());
  EXPECT_THAT(after.Mark(7, 1), IsOkAndHolds(Claim::kDuplicate));
  EXPECT_EQ(after.Windows(), before.Windows());
}

}  // namespace
}  // namespace parasol
