#include "coordinator/shards/shard_board.h"

#include <vector>

#include "base/status_matchers.h"
#include "cluster/trust/process_secret.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

wire::PartSpec Part(int64_t elements) {
  wire::PartSpec part;
  part.set_variable("v");
  part.set_elements(elements);
  return part;
}

// ps/0 and ps/4, with 30 and 10 elements.
ShardBoard TwoShards() {
  return ShardBoard(
      {{0, "h0:1", {Part(20), Part(10)}}, {4, "h4:1", {Part(10)}}},
      /*first_version=*/100);
}

TEST(ShardBoard, APsWithoutTheRunIsEmptyUntilItIsLoaded) {
  ShardBoard board = TwoShards();
  board.Arrived(4, 7, /*holds_shard=*/false);
  EXPECT_THAT(board.Empty(), ElementsAre(1));
  EXPECT_FALSE(board.AllPresent());
  board.Arrived(0, 8, /*holds_shard=*/false);
  board.Loaded(0, 8);
  EXPECT_TRUE(board.AllPresent());
  EXPECT_FALSE(board.AllReady());
  board.Loaded(1, 7);
  EXPECT_TRUE(board.AllReady());
}

TEST(ShardBoard, PlacementNamesWhoIsNotReady) {
  ShardBoard board = TwoShards();
  board.Arrived(0, 7, /*holds_shard=*/false);
  EXPECT_THAT(board.Placement("run"),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("ps/0 is being loaded"),
                             HasSubstr("ps/4 is missing"))));
}

TEST(ShardBoard, PlacementGivesAddressesIncarnationsAndParts) {
  ShardBoard board = TwoShards();
  board.Arrived(0, 7, /*holds_shard=*/false);
  board.Arrived(4, 8, /*holds_shard=*/false);
  board.Loaded(0, 7);
  board.Loaded(1, 8);
  ASSERT_OK_AND_ASSIGN(auto placement, board.Placement("run"));
  EXPECT_EQ(placement.run_id(), "run");
  ASSERT_EQ(placement.shard_size(), 2);
  EXPECT_EQ(placement.shard(1).address(), "h4:1");
  EXPECT_EQ(placement.shard(1).incarnation(), PublicNumber(8));
  EXPECT_EQ(placement.shard(0).part_size(), 2);
}

TEST(ShardBoard, VersionGrowsWithANewProcessAndWithALoad) {
  ShardBoard board = TwoShards();
  board.Arrived(0, 7, /*holds_shard=*/false);
  const int64_t arrived = board.version();
  EXPECT_GT(arrived, 100);
  board.Loaded(0, 7);
  EXPECT_GT(board.version(), arrived);
}

TEST(ShardBoard, AProcessThatHoldsTheShardOfAnEarlierChiefIsGivenThisJob) {
  ShardBoard board = TwoShards();
  board.Arrived(0, 7, /*holds_shard=*/true);
  EXPECT_THAT(board.Empty(), ElementsAre(0));
  EXPECT_TRUE(board.HoldsShard(0));
}

TEST(ShardBoard, AProcessThatComesBackWithItsVariablesKeepsTheVersion) {
  ShardBoard board = TwoShards();
  board.Arrived(0, 7, /*holds_shard=*/false);
  board.Loaded(0, 7);
  const int64_t version = board.version();
  board.Lost(0);
  EXPECT_FALSE(board.AllPresent());
  board.Arrived(0, 7, /*holds_shard=*/true);
  EXPECT_EQ(board.version(), version);
  EXPECT_TRUE(board.Empty().empty());
}

TEST(ShardBoard, ALateRegistrationOfALoadedProcessChangesNothing) {
  ShardBoard board = TwoShards();
  board.Arrived(0, 7, /*holds_shard=*/false);
  board.Loaded(0, 7);
  board.Arrived(0, 7, /*holds_shard=*/false);
  EXPECT_TRUE(board.Empty().empty());
}

TEST(ShardBoard, ALoadOfAReplacedProcessDoesNotCount) {
  ShardBoard board = TwoShards();
  board.Arrived(0, 7, /*holds_shard=*/false);
  board.Arrived(0, 8, /*holds_shard=*/false);
  board.Loaded(0, 7);
  EXPECT_THAT(board.Empty(), ElementsAre(0));
}

TEST(ShardBoard, AProcessThatComesBackWithoutThemIsLoadedAgain) {
  ShardBoard board = TwoShards();
  board.Arrived(0, 7, /*holds_shard=*/false);
  board.Loaded(0, 7);
  board.Lost(0);
  board.Arrived(0, 7, /*holds_shard=*/false);
  EXPECT_THAT(board.Empty(), ElementsAre(0));
}

TEST(ShardBoard, AShardThatIsGivenTheJobAgainStaysReady) {
  ShardBoard board = TwoShards();
  board.Arrived(0, 7, /*holds_shard=*/false);
  board.Loaded(0, 7);
  const int64_t version = board.version();
  board.GiveJobAgain();
  EXPECT_THAT(board.AwaitingJob(), ElementsAre(0));
  EXPECT_TRUE(board.IsReadyAt(0, 7));
  EXPECT_TRUE(board.HoldsShard(0));
  board.Lost(0);
  EXPECT_TRUE(board.AwaitingJob().empty());
  board.Arrived(0, 7, /*holds_shard=*/true);
  EXPECT_THAT(board.AwaitingJob(), ElementsAre(0)) << "it has not heard of it";
  board.Loaded(0, 7);
  EXPECT_TRUE(board.AwaitingJob().empty());
  EXPECT_EQ(board.version(), version);
}

TEST(ShardBoard, ASuccessorIsGivenTheJobWhenItIsLoaded) {
  ShardBoard board = TwoShards();
  board.Arrived(0, 7, /*holds_shard=*/false);
  board.Loaded(0, 7);
  board.GiveJobAgain();
  board.Arrived(0, 8, /*holds_shard=*/false);
  EXPECT_THAT(board.Empty(), ElementsAre(0));
  EXPECT_FALSE(board.HoldsShard(0));
  board.Loaded(0, 8);
  EXPECT_TRUE(board.AwaitingJob().empty());
}

TEST(ShardBoard, AReadyShardThatIsDeniedTwiceInARowIsLoadedAgain) {
  ShardBoard board = TwoShards();
  board.Arrived(0, 7, /*holds_shard=*/false);
  EXPECT_FALSE(board.Heard(0, 7, /*holds_shard=*/false)) << "being loaded";
  board.Loaded(0, 7);
  EXPECT_FALSE(board.Heard(0, 7, /*holds_shard=*/false)) << "sent before";
  EXPECT_FALSE(board.Heard(0, 7, /*holds_shard=*/true));
  EXPECT_FALSE(board.Heard(0, 7, /*holds_shard=*/false));
  EXPECT_TRUE(board.Empty().empty());
  EXPECT_FALSE(board.Heard(0, 8, /*holds_shard=*/false)) << "another process";
  EXPECT_TRUE(board.Heard(0, 7, /*holds_shard=*/false));
  EXPECT_THAT(board.Empty(), ElementsAre(0));
}

TEST(ShardBoard, SkewIsTheLargestOverTheMean) {
  EXPECT_DOUBLE_EQ(TwoShards().Skew(), 1.5);
  EXPECT_DOUBLE_EQ(ShardBoard({{0, "a", {}}}, 0).Skew(), 1);
}

}  // namespace
}  // namespace parasol
