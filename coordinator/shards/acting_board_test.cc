#include "coordinator/shards/acting_board.h"

#include <optional>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr absl::Time kNow = absl::FromUnixSeconds(1000);

TEST(ActingBoardTest, AProcessOfItsOwnEndsTheActing) {
  ActingBoard board(ActingBoard::Hosts{});
  board.Entered(1, 0);
  EXPECT_EQ(board.HostAt(1), 0);
  EXPECT_THAT(board.hosts(), ElementsAre(Pair(1, 0)));
  board.Entered(1, std::nullopt);
  EXPECT_EQ(board.HostAt(1), std::nullopt);
  EXPECT_THAT(board.hosts(), IsEmpty());
}

TEST(ActingBoardTest, WhoActedForAnEarlierChiefIsKnown) {
  const ActingBoard board(ActingBoard::Hosts{{2, 0}});
  EXPECT_EQ(board.HostAt(2), 0);
  EXPECT_THAT(board.hosts(), ElementsAre(Pair(2, 0)));
}

TEST(ActingBoardTest, OneThatHasLeftIsNotWaitedFor) {
  ActingBoard board(ActingBoard::Hosts{});
  EXPECT_FALSE(board.HasLeft(1));
  board.Entered(1, 0);
  board.Left(1);
  EXPECT_TRUE(board.HasLeft(1));
  EXPECT_EQ(board.HostAt(1), std::nullopt);
  EXPECT_THAT(board.hosts(), IsEmpty());
  board.Entered(1, 0);
  EXPECT_FALSE(board.HasLeft(1));
}

TEST(ActingBoardTest, WithItsHostGoesWhoeverActsThere) {
  ActingBoard board(ActingBoard::Hosts{{2, 0}, {0, 1}});
  EXPECT_THAT(board.HostIsGone(0), ElementsAre(2));
  EXPECT_EQ(board.HostAt(2), std::nullopt);
  EXPECT_EQ(board.HostAt(0), 1);
  EXPECT_THAT(board.HostIsGone(0), IsEmpty());
}

TEST(ActingBoardTest, OneThatActedIsKnownUntilAProcessOfItsOwnComes) {
  ActingBoard board(ActingBoard::Hosts{{2, 0}});
  board.Entered(0, 1);
  EXPECT_TRUE(board.WasActedFor(2));
  EXPECT_TRUE(board.WasActedFor(0));
  EXPECT_FALSE(board.WasActedFor(1));
  board.HostIsGone(0);
  board.Left(0);
  EXPECT_TRUE(board.WasActedFor(2));
  EXPECT_TRUE(board.WasActedFor(0));
  board.Entered(2, std::nullopt);
  EXPECT_FALSE(board.WasActedFor(2));
}

TEST(ActingBoardTest, AComerIsThereAsLongAsItIsHeard) {
  ActingBoard board(ActingBoard::Hosts{});
  board.NoteComer(1, kNow);
  EXPECT_FALSE(board.HasComer(1, kNow)) << "nobody acts there";
  board.Entered(1, 0);
  EXPECT_FALSE(board.HasComer(1, kNow));
  board.NoteComer(1, kNow);
  EXPECT_TRUE(board.HasComer(1, kNow + absl::Seconds(2)));
  EXPECT_FALSE(board.HasComer(1, kNow + ActingBoard::kComerPatience));
}

TEST(ActingBoardTest, NobodyIsThereUntilSomebodyEnters) {
  ActingBoard board(ActingBoard::Hosts{});
  board.NoteNobody(1);
  EXPECT_TRUE(board.IsNobody(1));
  EXPECT_FALSE(board.IsNobody(0));
  board.Entered(1, std::nullopt);
  EXPECT_FALSE(board.IsNobody(1));
}

}  // namespace
}  // namespace parasol
