#include "ps/journal/standby_feed.h"

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status_matchers.h"
#include "cluster/rpc/follow_message.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps/journal/push_record.h"
#include "ps/testing/requests.h"

namespace parasol {
namespace {

using Rule = StandbyFeed::Rule;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class StandbyFeedTest : public testing::Test {
 protected:
  // Applies a push, and notes when it is acknowledged.
  absl::Status Push(uint64_t sequence, bool is_applied = true,
                    std::optional<int64_t> step = std::nullopt,
                    uint64_t journal_record = 0) {
    const wire::Operation operation =
        OperationOf(MakePush(sequence, {MakeRange(0, 0, 1)}));
    const std::string gradient = Floats(1, 1);
    const std::vector<PayloadView> payloads = {ViewOf(gradient)};
    absl::Status status = feed_.AwaitRoom(step);
    if (!status.ok()) return status;
    status = feed_.ApplyAndAppend(
        {.worker_incarnation = 7, .operation = operation, .payloads = payloads},
        step, journal_record, [is_applied] { return is_applied; });
    if (status.ok() && is_applied) {
      feed_.WhenKept([this, sequence](const absl::Status& kept) {
        if (kept.ok()) acknowledged_.push_back(sequence);
        if (!kept.ok()) refused_.push_back(sequence);
      });
    }
    return status;
  }
  void SetRule(Rule rule) {
    feed_.SetRule(rule);
    feed_.Release();
  }
  // Sequences of the records that are taken.
  std::vector<uint64_t> Taken() {
    std::vector<uint64_t> sequences;
    for (const FollowMessage& message :
         feed_.Take(1 << 20, absl::ZeroDuration())) {
      const wire::FollowRequest whole = WholeRequest(message);
      for (const std::string& record : whole.record()) {
        const auto push = ParsePushRecord(record);
        EXPECT_OK(push);
        sequences.push_back(push->operation.push().sequence());
      }
    }
    return sequences;
  }

  SimulatedClock clock_;
  StandbyFeed feed_{clock_};
  std::vector<uint64_t> acknowledged_;
  std::vector<uint64_t> refused_;
};

TEST_F(StandbyFeedTest, NothingIsAcknowledgedBeforeThereIsARule) {
  ASSERT_OK(Push(1));
  EXPECT_THAT(acknowledged_, IsEmpty());
  SetRule(Rule::kAlone);
  EXPECT_THAT(acknowledged_, ElementsAre(1));
  ASSERT_OK(Push(2));
  EXPECT_THAT(acknowledged_, ElementsAre(1, 2));
}

TEST_F(StandbyFeedTest, AStreamHasWhatWasAppliedSinceItBegan) {
  SetRule(Rule::kAlone);
  ASSERT_OK(Push(1));
  feed_.Begin(std::nullopt);
  ASSERT_OK(Push(2));
  ASSERT_OK(Push(3, /*is_applied=*/false));
  ASSERT_OK(Push(4));
  EXPECT_THAT(Taken(), ElementsAre(2, 4));
  EXPECT_EQ(feed_.behind(), 2);
}

TEST_F(StandbyFeedTest, APushIsAcknowledgedWhenItIsHeld) {
  feed_.Begin(std::nullopt);
  SetRule(Rule::kHeld);
  ASSERT_OK(Push(1));
  ASSERT_OK(Push(2));
  EXPECT_THAT(acknowledged_, IsEmpty());
  ASSERT_OK(feed_.Held(1));
  EXPECT_THAT(acknowledged_, ElementsAre(1));
  EXPECT_THAT(feed_.Held(3), StatusIs(absl::StatusCode::kInvalidArgument));
  ASSERT_OK(feed_.Held(2));
  EXPECT_THAT(acknowledged_, ElementsAre(1, 2));
}

TEST_F(StandbyFeedTest, AfterTheStreamsEndPushesWait) {
  feed_.Begin(std::nullopt);
  SetRule(Rule::kHeld);
  ASSERT_OK(Push(1));
  feed_.End();
  ASSERT_OK(Push(2));
  ASSERT_OK(feed_.Held(1));  // came late
  feed_.Release();
  EXPECT_THAT(acknowledged_, IsEmpty());
  // The state of the next stream has both.
  feed_.Begin(std::nullopt);
  SetRule(Rule::kHeld);
  EXPECT_THAT(acknowledged_, ElementsAre(1, 2));
}

TEST_F(StandbyFeedTest, WithoutAStreamNothingCountsAsHeld) {
  feed_.Begin(std::nullopt);
  SetRule(Rule::kHeld);
  feed_.End();
  // An answer of the stream that was on its way says so.
  SetRule(Rule::kHeld);
  ASSERT_OK(Push(1));
  EXPECT_THAT(acknowledged_, IsEmpty());
  SetRule(Rule::kAlone);
  EXPECT_THAT(acknowledged_, ElementsAre(1));
}

TEST_F(StandbyFeedTest, GradientsOfStepsThatACutHasAreNotSent) {
  feed_.Begin(/*from_step=*/5);
  ASSERT_OK(Push(1, true, /*step=*/4));
  ASSERT_OK(Push(2, true, 5));
  ASSERT_OK(Push(3, true, 6));
  EXPECT_THAT(Taken(), ElementsAre(2, 3));
}

TEST_F(StandbyFeedTest, AChangeKeepsItsPlaceAmongThePushes) {
  feed_.Begin(std::nullopt);
  ASSERT_OK(Push(1));
  wire::LoadRequest change;
  change.set_global_step(9);
  feed_.AppendChange(change);
  ASSERT_OK(Push(2));
  const auto messages = feed_.Take(1 << 20, absl::ZeroDuration());
  ASSERT_EQ(messages.size(), 3u);
  EXPECT_EQ(messages[0].records.size(), 1u);
  EXPECT_EQ(messages[1].request.header().load().global_step(), 9);
  EXPECT_EQ(messages[2].records.size(), 1u);
  EXPECT_EQ(feed_.appended(), 3);
}

TEST_F(StandbyFeedTest, RulesThatChangedBeforeAStreamComeFirst) {
  wire::LoadRequest change;
  change.mutable_optimizer()->mutable_sgd()->set_learning_rate(.5);
  feed_.AppendChange(change);
  feed_.Begin(std::nullopt);
  ASSERT_OK(Push(1));
  const auto messages = feed_.Take(1 << 20, absl::ZeroDuration());
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_EQ(
      messages[0].request.header().load().optimizer().sgd().learning_rate(),
      .5);
  EXPECT_EQ(messages[1].records.size(), 1u);
  EXPECT_EQ(feed_.appended(), 2);
}

TEST_F(StandbyFeedTest, SmallRecordsShareMessagesAndALargeOneHasItsOwn) {
  feed_.Begin(std::nullopt);
  ASSERT_OK(Push(1));
  ASSERT_OK(Push(2));
  const wire::Operation operation =
      OperationOf(MakePush(3, {MakeRange(0, 0, 1)}));
  const std::string gradient(StandbyFeed::kMessageBytes, 'x');
  const std::vector<PayloadView> payloads = {ViewOf(gradient)};
  ASSERT_OK(feed_.ApplyAndAppend({.operation = operation, .payloads = payloads},
                                 std::nullopt, 0, [] { return true; }));
  ASSERT_OK(Push(4));
  const auto messages = feed_.Take(1 << 20, absl::ZeroDuration());
  ASSERT_EQ(messages.size(), 3u);
  EXPECT_EQ(messages[0].records.size(), 2u);
  EXPECT_EQ(messages[1].records.size(), 1u);
  EXPECT_EQ(messages[2].records.size(), 1u);
}

TEST_F(StandbyFeedTest, WhatTheJournalDoesNotKeepYetIsNotSent) {
  feed_.Begin(std::nullopt);
  for (uint64_t i = 1; i <= 3; ++i) {
    ASSERT_OK(Push(i, /*is_applied=*/true, std::nullopt, /*journal_record=*/i));
  }
  EXPECT_THAT(Taken(), IsEmpty());
  feed_.NoteKept(2);
  EXPECT_THAT(Taken(), ElementsAre(1, 2));
  feed_.NoteKept(1);
  EXPECT_THAT(Taken(), IsEmpty());
  feed_.NoteKept(3);
  const auto messages = feed_.Take(1 << 20, absl::ZeroDuration());
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_EQ(messages[0].request.journal_record(), 3u);
}

TEST_F(StandbyFeedTest, WithoutRoomAPushIsNotApplied) {
  feed_.Begin(std::nullopt);
  const std::string gradient(StandbyFeed::kWindowBytes, 'x');
  const std::vector<PayloadView> payloads = {ViewOf(gradient)};
  for (const uint64_t sequence : {1, 2}) {
    EXPECT_OK(feed_.AwaitRoom(std::nullopt)) << "however large the first is";
    const wire::Operation operation =
        OperationOf(MakePush(sequence, {MakeRange(0, 0, 1)}));
    ASSERT_OK(
        feed_.ApplyAndAppend({.operation = operation, .payloads = payloads},
                             std::nullopt, 0, [] { return true; }));
    // What is on its way counts until it is held.
    EXPECT_THAT(Taken(), ElementsAre(sequence));
  }
  std::atomic<bool> has_ended = false;
  std::jthread late([&] {
    EXPECT_THAT(Push(3), StatusIs(absl::StatusCode::kUnavailable));
    has_ended = true;
  });
  while (!has_ended) {
    clock_.Advance(StandbyFeed::kRoomWait);
    std::this_thread::yield();
  }
  ASSERT_OK(feed_.Held(1));
  EXPECT_OK(Push(4));
}

TEST_F(StandbyFeedTest, AClosedFeedRefusesThoseThatWait) {
  ASSERT_OK(Push(1));
  feed_.Close();
  EXPECT_THAT(refused_, ElementsAre(1));
  EXPECT_THAT(Push(2), StatusIs(absl::StatusCode::kUnavailable));
}

}  // namespace
}  // namespace parasol
