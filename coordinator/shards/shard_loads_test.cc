#include "coordinator/shards/shard_loads.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;
using Verdict = ShardLoads::Verdict;

absl::Time At(int seconds) { return absl::FromUnixSeconds(1000 + seconds); }

class ShardLoadsTest : public testing::Test {
 protected:
  ShardLoadsTest() : board_({{0, "h0:1", {}}, {4, "h4:1", {}}}, 100) {
    board_.Arrived(0, 7, /*holds_shard=*/false);
    board_.Arrived(4, 8, /*holds_shard=*/true);
  }

  ShardBoard board_;
  ShardLoads loads_;
};

TEST_F(ShardLoadsTest, EmptyShardsAreDueAndThoseThatHaveTheirsAreMarked) {
  const auto due = loads_.Due(board_, At(0));
  ASSERT_THAT(due, SizeIs(2));
  EXPECT_EQ(due[0].incarnation, 7u);
  EXPECT_FALSE(due[0].holds_shard);
  EXPECT_EQ(due[1].shard, 1u);
  EXPECT_TRUE(due[1].holds_shard);
}

TEST_F(ShardLoadsTest, ALoadedShardIsDueNoMore) {
  for (const auto& target : loads_.Due(board_, At(0))) {
    EXPECT_EQ(loads_.Done(target, absl::OkStatus(), board_, At(0)),
              Verdict::kLoaded);
  }
  EXPECT_THAT(loads_.Due(board_, At(0)), IsEmpty());
  EXPECT_TRUE(board_.AllReady());
}

TEST_F(ShardLoadsTest, AfterAFailureItWaitsASecond) {
  EXPECT_EQ(loads_.Done({0, 7}, absl::UnavailableError("x"), board_, At(0)),
            Verdict::kAgain);
  EXPECT_THAT(loads_.Due(board_, At(0)), IsEmpty());
  EXPECT_THAT(loads_.Due(board_, At(1)), SizeIs(2));
}

TEST_F(ShardLoadsTest, AReadyShardIsGivenTheJobAsOftenAsItTakes) {
  board_.Loaded(0, 7);
  board_.Loaded(1, 8);
  board_.GiveJobAgain();
  for (int second = 0; second < 2 * ShardLoads::kMaxFailures; ++second) {
    const auto due = loads_.Due(board_, At(second));
    ASSERT_THAT(due, SizeIs(2));
    EXPECT_TRUE(due[0].holds_shard);
    // The disk is away, or says that it has lost everything.
    for (const absl::Status& status :
         {absl::UnavailableError("x"), absl::DataLossError("x")}) {
      EXPECT_EQ(loads_.Done(due[0], status, board_, At(second)),
                Verdict::kAgain);
    }
    EXPECT_TRUE(board_.AllReady());
  }
  EXPECT_EQ(loads_.failures(), 0);
  EXPECT_EQ(
      loads_.Done({0, 7}, absl::InvalidArgumentError("x"), board_, At(200)),
      Verdict::kFailed);
}

TEST_F(ShardLoadsTest, AnErrorThatStaysFailsTheJob) {
  EXPECT_EQ(loads_.Done({0, 7}, absl::DataLossError("x"), board_, At(0)),
            Verdict::kFailed);
}

TEST_F(ShardLoadsTest, TheErrorOfAProcessThatIsGoneCountsForNothing) {
  EXPECT_EQ(loads_.Done({0, 6}, absl::DataLossError("x"), board_, At(0)),
            Verdict::kMoot);
  EXPECT_THAT(loads_.Due(board_, At(0)), SizeIs(2));
}

// A process that was replaced, or a successor that has yet to register.
TEST_F(ShardLoadsTest, ARefusalByAnotherProcessIsBorneForAWhile) {
  const absl::Status refusal = absl::FailedPreconditionError("not for me");
  for (int i = 1; i < ShardLoads::kMaxFailures; ++i) {
    ASSERT_EQ(loads_.Done({0, 7}, refusal, board_, At(i)), Verdict::kAgain);
  }
  EXPECT_EQ(loads_.Done({0, 7}, refusal, board_, At(60)), Verdict::kGaveUp);
}

}  // namespace
}  // namespace parasol
