#include "coordinator/shards/standby_board.h"

#include <optional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;
using ::testing::Pair;

constexpr uint64_t kSaved = StandbyBoard::kSaved;
constexpr uint64_t kAlone = StandbyBoard::kAlone;

wire::StandbyReport Has(uint64_t number) {
  wire::StandbyReport report;
  report.mutable_place()->set_number(number);
  report.mutable_place()->set_task("ps/1");
  return report;
}

wire::StandbyReport HasNone(uint64_t given_up) {
  wire::StandbyReport report;
  report.mutable_place()->set_number(given_up);
  return report;
}

// Hears the report, records what is to be, and returns the answer.
std::optional<uint64_t> Told(StandbyBoard& board, int place,
                             const wire::StandbyReport& report) {
  board.Hear(place, report);
  if (const auto kept = board.ToRecord()) board.Recorded(*kept);
  return board.AnswerTo(place, report);
}

TEST(StandbyBoardTest, TheNextPsHasTheStandby) {
  const StandbyBoard board({0, 2, 5}, {});
  EXPECT_EQ(board.HostOf(0), 2);
  EXPECT_EQ(board.HostOf(2), 5);
  EXPECT_EQ(board.HostOf(5), 0);
}

TEST(StandbyBoardTest, NothingIsToldBeforeItIsRecorded) {
  StandbyBoard board({0, 1}, {});
  board.Hear(0, HasNone(0));
  EXPECT_EQ(board.AnswerTo(0, HasNone(0)), std::nullopt);
  EXPECT_THAT(board.ToRecord(),
              Optional(ElementsAre(Pair(0, kAlone), Pair(1, kSaved))));
  board.Recorded(*board.ToRecord());
  EXPECT_THAT(board.AnswerTo(0, HasNone(0)), Optional(0));
  EXPECT_EQ(board.ToRecord(), std::nullopt);
}

TEST(StandbyBoardTest, AReportThatComesLateChangesNothing) {
  StandbyBoard board({0, 1}, {});
  EXPECT_THAT(Told(board, 0, HasNone(0)), Optional(0));
  EXPECT_THAT(Told(board, 0, Has(7)), Optional(7));
  // Of the time before the standby.
  EXPECT_EQ(Told(board, 0, HasNone(0)), std::nullopt);
  EXPECT_EQ(board.KeptFor(0), 7);
  EXPECT_THAT(Told(board, 0, HasNone(7)), Optional(0));
  // Of the time when there was the standby.
  EXPECT_EQ(Told(board, 0, Has(7)), std::nullopt);
  EXPECT_EQ(board.KeptFor(0), kAlone);
  EXPECT_THAT(Told(board, 0, Has(8)), Optional(8));
}

TEST(StandbyBoardTest, AStandbyThatWasGivenUpUnseenIsNeverKept) {
  StandbyBoard board({0, 1}, {});
  EXPECT_THAT(Told(board, 0, HasNone(7)), Optional(0));
  EXPECT_EQ(Told(board, 0, Has(7)), std::nullopt);
  EXPECT_EQ(board.KeptFor(0), kAlone);
}

TEST(StandbyBoardTest, ACheckpointThatHasAllNeedsNoStandby) {
  StandbyBoard board({0, 1}, {});
  Told(board, 0, Has(7));
  Told(board, 1, HasNone(0));
  board.Saved();
  EXPECT_THAT(board.ToRecord(),
              Optional(ElementsAre(Pair(0, kSaved), Pair(1, kSaved))));
  // The shards stay: nothing is acknowledged.
  EXPECT_EQ(Told(board, 0, Has(7)), std::nullopt);
  EXPECT_EQ(board.KeptFor(0), kSaved);
  board.GoOn();
  EXPECT_THAT(Told(board, 0, Has(7)), Optional(7));
}

TEST(StandbyBoardTest, ALaterChiefKnowsWhatIsRecorded) {
  StandbyBoard board({0, 1}, {{0, 7}, {1, kAlone}});
  EXPECT_EQ(board.KeptFor(0), 7);
  EXPECT_EQ(board.KeptFor(1), kAlone);
  EXPECT_EQ(board.ToRecord(), std::nullopt);
  EXPECT_THAT(Told(board, 0, HasNone(7)), Optional(0));
}

TEST(StandbyBoardTest, AJobThatDoesNotReplicateKeepsNothing) {
  StandbyBoard board({}, {{0, 7}});
  EXPECT_FALSE(board.is_used());
  EXPECT_EQ(Told(board, 0, Has(7)), std::nullopt);
  EXPECT_EQ(board.ToRecord(), std::nullopt);
}

}  // namespace
}  // namespace parasol
