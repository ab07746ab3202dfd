#include "ps/standby/standby_duty.h"

#include <optional>

#include "absl/time/time.h"
#include "base/clock.h"
#include "gtest/gtest.h"
#include "proto/chief.pb.h"
#include "ps/journal/standby_feed.h"

namespace parasol {
namespace {

using Rule = StandbyFeed::Rule;

constexpr uint64_t kAlone = UINT64_MAX;

class StandbyDutyTest : public testing::Test {
 protected:
  // Reports, and hears that the chief has kept `kept`.
  wire::StandbyReport Answered(uint64_t kept) {
    const wire::StandbyReport report = Reported();
    duty_.Hear(Answer(kept));
    return report;
  }
  wire::StandbyReport Reported() {
    wire::HeartbeatRequest request;
    duty_.Report(request, now_);
    return request.standby();
  }
  static wire::HeartbeatResponse Answer(uint64_t kept, uint64_t host = 9) {
    wire::HeartbeatResponse answer;
    answer.set_kept_standby(kept);
    answer.mutable_standby_host()->set_ps_incarnation(host);
    answer.mutable_standby_host()->set_task("ps/1");
    return answer;
  }
  // Brings the duty to a standby of this number that counts.
  void MakeStandby(uint64_t number) {
    duty_.Making(*duty_.ToMake(now_), now_);
    HearStandby(number, /*held=*/0);
  }
  void HearStandby(uint64_t number, int64_t held) {
    wire::FollowResponse answer;
    answer.set_number(number);
    answer.set_held(held);
    duty_.HearStandby(answer, feed_);
  }

  absl::Time now_ = absl::FromUnixSeconds(1000);
  SimulatedClock clock_;
  StandbyFeed feed_{clock_};
  StandbyDuty duty_;
};

TEST_F(StandbyDutyTest,
       NothingIsAcknowledgedUntilTheChiefHasKeptThatItIsAlone) {
  duty_.Loaded(/*is_new=*/true, 0);
  EXPECT_EQ(duty_.rule(), Rule::kWait);
  EXPECT_TRUE(duty_.IsUrgent());
  EXPECT_FALSE(duty_.ToMake(now_).has_value());
  EXPECT_TRUE(Answered(0).place().task().empty());
  EXPECT_EQ(duty_.rule(), Rule::kAlone);
  EXPECT_FALSE(duty_.IsUrgent());
  EXPECT_TRUE(duty_.ToMake(now_).has_value());
}

TEST_F(StandbyDutyTest, AStandbyThatHasJoinedHoldsPushesBeforeItCounts) {
  duty_.Loaded(true, 0);
  Answered(0);
  duty_.Making(*duty_.ToMake(now_), now_);
  EXPECT_EQ(duty_.rule(), Rule::kAlone);
  feed_.Begin(std::nullopt);
  feed_.AppendChange(wire::LoadRequest());
  HearStandby(7, /*held=*/0);
  EXPECT_EQ(duty_.rule(), Rule::kHeld);
  // The chief is not told before it has what was acknowledged alone.
  EXPECT_TRUE(Reported().place().task().empty());
  HearStandby(7, /*held=*/1);
  EXPECT_EQ(Reported().place().number(), 7);
  EXPECT_EQ(Reported().place().task(), "ps/1");
  EXPECT_FALSE(duty_.IsInSync());
  Answered(7);
  EXPECT_TRUE(duty_.IsInSync());
  EXPECT_EQ(duty_.rule(), Rule::kHeld);
}

TEST_F(StandbyDutyTest, AfterALossPushesWaitForTheChief) {
  duty_.Loaded(true, 0);
  Answered(0);
  MakeStandby(7);
  Answered(7);
  duty_.Lost(now_);
  EXPECT_EQ(duty_.rule(), Rule::kWait);
  EXPECT_FALSE(duty_.ToMake(now_ + absl::Hours(1)).has_value());
  // It names what it has given up, so the chief knows that the report is new.
  EXPECT_EQ(Answered(0).place().number(), 7);
  EXPECT_EQ(duty_.rule(), Rule::kAlone);
  EXPECT_TRUE(duty_.ToMake(now_ + StandbyDuty::kRetry).has_value());
}

TEST_F(StandbyDutyTest, AnAnswerToAnEarlierReportDecidesNothing) {
  duty_.Loaded(true, 0);
  Answered(0);
  MakeStandby(7);
  Reported();
  duty_.Lost(now_);
  duty_.Hear(Answer(7));
  EXPECT_EQ(duty_.rule(), Rule::kWait);
}

TEST_F(StandbyDutyTest, ALostStandbyThatDidNotCountCostsNoWait) {
  duty_.Loaded(true, 0);
  Answered(0);
  duty_.Making(*duty_.ToMake(now_), now_);
  feed_.Begin(std::nullopt);
  feed_.AppendChange(wire::LoadRequest());
  HearStandby(7, /*held=*/0);
  duty_.Lost(now_);
  EXPECT_EQ(duty_.rule(), Rule::kAlone);
  EXPECT_FALSE(duty_.ToMake(now_).has_value());
}

TEST_F(StandbyDutyTest, ASuccessorGivesUpWhatItWasRestoredFrom) {
  duty_.Loaded(true, 5);
  EXPECT_EQ(Reported().place().number(), 5);
  EXPECT_TRUE(Reported().place().task().empty());
  EXPECT_EQ(duty_.rule(), Rule::kWait);
  Answered(0);
  EXPECT_EQ(duty_.rule(), Rule::kAlone);
}

TEST_F(StandbyDutyTest, ALoadThatKeepsTheShardIsConfirmedAnew) {
  duty_.Loaded(true, kAlone);
  Answered(0);
  MakeStandby(7);
  Answered(7);
  duty_.Loaded(/*is_new=*/false, 7);
  EXPECT_EQ(duty_.rule(), Rule::kWait);
  EXPECT_EQ(Answered(7).place().number(), 7);
  EXPECT_EQ(duty_.rule(), Rule::kHeld);
}

TEST_F(StandbyDutyTest, AStandbyOfAProcessThatWasReplacedIsMisplaced) {
  duty_.Loaded(true, 0);
  Answered(0);
  MakeStandby(7);
  Answered(7);
  EXPECT_FALSE(duty_.IsMisplaced());
  Reported();
  duty_.Hear(Answer(7, /*host=*/10));
  EXPECT_TRUE(duty_.IsMisplaced());
}

}  // namespace
}  // namespace parasol
