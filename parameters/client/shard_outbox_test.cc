#include "parameters/client/shard_outbox.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cluster/rpc/protocol_limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using OperationPtr = ShardOutbox::OperationPtr;

const std::string kRun = "run-1";

struct OperationOptions {
  size_t lane = 0;
  size_t bytes = 4;
  size_t payloads = 1;
};

std::shared_ptr<Call> CallOf(bool is_push) {
  const auto call = std::make_shared<Call>();
  call->is_push = is_push;
  call->run_id = &kRun;
  return call;
}

OperationPtr OperationOf(std::shared_ptr<const Call> call,
                         const OperationOptions& options) {
  return std::make_shared<const EncodedOperation>(
      EncodedOperation{.asked = {.call = std::move(call), .lane = options.lane},
                       .payloads = options.payloads,
                       .bytes = options.bytes});
}

OperationPtr Push(size_t lane = 0, size_t bytes = 4) {
  static const std::shared_ptr<const Call> call = CallOf(/*is_push=*/true);
  return OperationOf(call, {.lane = lane, .bytes = bytes});
}

OperationPtr Pull(size_t lane = 0, size_t bytes = 4) {
  static const std::shared_ptr<const Call> call = CallOf(/*is_push=*/false);
  return OperationOf(call, {.lane = lane, .bytes = bytes, .payloads = 0});
}

OperationPtr SyncPush(size_t lane = 0, size_t bytes = 4) {
  const std::shared_ptr<Call> call = CallOf(/*is_push=*/true);
  call->sync = {.step = 1, .replica = 0};
  return OperationOf(call, {.lane = lane, .bytes = bytes});
}

std::vector<uint64_t> Ids(const ShardOutbox::Message& message) {
  std::vector<uint64_t> ids;
  for (const ShardOutbox::Entry& entry : message) ids.push_back(entry.id);
  return ids;
}

std::vector<uint64_t> Sequences(const ShardOutbox::Message& message) {
  std::vector<uint64_t> sequences;
  for (const ShardOutbox::Entry& entry : message) {
    sequences.push_back(entry.sequence);
  }
  return sequences;
}

std::vector<bool> WereSent(const ShardOutbox::Message& message) {
  std::vector<bool> were_sent;
  for (const ShardOutbox::Entry& entry : message) {
    were_sent.push_back(entry.was_sent);
  }
  return were_sent;
}

TEST(ShardOutboxTest, WhatWaitsTogetherLeavesTogetherInOrder) {
  ShardOutbox outbox(1, {});
  outbox.Add(Push());
  outbox.Add(Pull());
  outbox.Add(Push());
  const ShardOutbox::Message message = outbox.Take(0);
  EXPECT_THAT(Ids(message), ElementsAre(1, 2, 3));
  EXPECT_THAT(Sequences(message), ElementsAre(1, 0, 2));
  EXPECT_THAT(outbox.Take(0), IsEmpty());
  EXPECT_EQ(outbox.unanswered(), 3u);
}

TEST(ShardOutboxTest, AMessageEndsAtItsLimits) {
  ShardOutbox outbox(1, {.message_bytes = 10, .message_operations = 3});
  for (const size_t bytes : {4, 4, 4, 100, 1, 1, 1, 1}) {
    outbox.Add(Push(0, bytes));
  }
  EXPECT_THAT(Ids(outbox.Take(0)), ElementsAre(1, 2));
  EXPECT_THAT(Ids(outbox.Take(0)), ElementsAre(3));
  EXPECT_THAT(Ids(outbox.Take(0)), ElementsAre(4)) << "too large for any";
  EXPECT_THAT(Ids(outbox.Take(0)), ElementsAre(5, 6, 7));
  EXPECT_THAT(Ids(outbox.Take(0)), ElementsAre(8));
}

TEST(ShardOutboxTest, AMessageHasNoMorePayloadsThanAShardTakes) {
  ShardOutbox outbox(1, {});
  for (int i = 0; i < 3; ++i) {
    outbox.Add(OperationOf(CallOf(/*is_push=*/true),
                           {.payloads = kMaxRangesPerMessage / 2}));
  }
  EXPECT_THAT(Ids(outbox.Take(0)), ElementsAre(1, 2));
}

TEST(ShardOutboxTest, AMessageIsOfOneRun) {
  ShardOutbox outbox(1, {});
  outbox.Add(Push());
  const std::shared_ptr<Call> other = CallOf(/*is_push=*/true);
  const std::string another = "run-2";
  other->run_id = &another;
  outbox.Add(OperationOf(other, {}));
  EXPECT_THAT(Ids(outbox.Take(0)), ElementsAre(1));
  EXPECT_THAT(Ids(outbox.Take(0)), ElementsAre(2));
}

TEST(ShardOutboxTest, SequencesCountPushesAsTheyLeaveOverAllLanes) {
  ShardOutbox outbox(2, {.message_operations = 1});
  outbox.Add(Push(0));
  outbox.Add(Push(1));
  outbox.Add(Push(0));
  EXPECT_THAT(Sequences(outbox.Take(1)), ElementsAre(1));
  EXPECT_THAT(Sequences(outbox.Take(0)), ElementsAre(2));
  EXPECT_THAT(Sequences(outbox.Take(0)), ElementsAre(3));
}

TEST(ShardOutboxTest, AnAnswerIsTakenOnce) {
  ShardOutbox outbox(2, {});
  const OperationPtr first = Push(), second = Pull();
  outbox.Add(first);
  outbox.Add(second);
  EXPECT_EQ(outbox.Answer(0, 1).operation, nullptr) << "has not left";
  outbox.Take(0);
  EXPECT_EQ(outbox.Answer(1, 1).operation, nullptr) << "of the other lane";
  EXPECT_EQ(outbox.Answer(0, 2).operation, second) << "out of order";
  EXPECT_EQ(outbox.Answer(0, 2).operation, nullptr);
  EXPECT_EQ(outbox.Answer(0, 1).operation, first);
  EXPECT_EQ(outbox.Answer(0, 1).operation, nullptr);
  EXPECT_EQ(outbox.Answer(0, 0).operation, nullptr);
  EXPECT_EQ(outbox.Answer(0, 3).operation, nullptr);
  EXPECT_EQ(outbox.unanswered(), 0u);
}

TEST(ShardOutboxTest, KnowsUpToWhichSequenceAllWereAcknowledged) {
  ShardOutbox outbox(1, {});
  for (int i = 0; i < 4; ++i) outbox.Add(Push());
  outbox.Take(0);
  EXPECT_EQ(outbox.acknowledged(), 0u);
  outbox.Answer(0, 1);
  outbox.Answer(0, 3);
  EXPECT_EQ(outbox.acknowledged(), 1u);
  outbox.Answer(0, 2);
  EXPECT_EQ(outbox.acknowledged(), 3u);
  outbox.Answer(0, 4);
  outbox.NoteRefusal();
  EXPECT_EQ(outbox.acknowledged(), 0u) << "one of them is in no shard";
}

TEST(ShardOutboxTest, WhatIsGivenUpIsNotAcknowledged) {
  ShardOutbox outbox(1, {});
  outbox.Add(Push());
  outbox.Take(0);
  outbox.TakeAll();
  EXPECT_EQ(outbox.acknowledged(), 0u);
}

TEST(ShardOutboxTest, WhatAStreamDidNotAnswerLeavesAgainAsItWas) {
  ShardOutbox outbox(2, {.message_operations = 3});
  for (int i = 0; i < 5; ++i) outbox.Add(Push(0));
  outbox.Add(Push(1));
  outbox.Take(0);
  outbox.Take(1);
  outbox.Answer(0, 2);
  outbox.Rewind(0);
  EXPECT_EQ(outbox.Answer(0, 1).operation, nullptr)
      << "the next stream has not sent it";
  const ShardOutbox::Message again = outbox.Take(0);
  EXPECT_THAT(Ids(again), ElementsAre(1, 3, 4));
  EXPECT_THAT(Sequences(again), ElementsAre(1, 3, 5));
  EXPECT_THAT(WereSent(again), ElementsAre(true, true, false));
  EXPECT_THAT(Sequences(outbox.Take(0)), ElementsAre(6));
  for (const uint64_t id : {1, 3, 4, 5}) {
    EXPECT_NE(outbox.Answer(0, id).operation, nullptr) << id;
  }
  EXPECT_NE(outbox.Answer(1, 1).operation, nullptr) << "not disturbed";
  EXPECT_EQ(outbox.unanswered(), 0u);
}

TEST(ShardOutboxTest, TheOldestIdIsOfTheOldestUnansweredOperation) {
  ShardOutbox outbox(1, {});
  EXPECT_EQ(outbox.oldest_id(0), 1u) << "the next one";
  for (int i = 0; i < 3; ++i) outbox.Add(Push());
  outbox.Take(0);
  outbox.Answer(0, 2);
  EXPECT_EQ(outbox.oldest_id(0), 1u);
  outbox.Answer(0, 1);
  EXPECT_EQ(outbox.oldest_id(0), 3u);
  outbox.TakeAll();
  EXPECT_EQ(outbox.oldest_id(0), 4u);
}

TEST(ShardOutboxTest, AHoleBehindTheResentOnesIsNotCountedTwice) {
  ShardOutbox outbox(1, {.message_operations = 1});
  outbox.Add(Push());
  outbox.Add(Push());
  outbox.Take(0);
  outbox.Take(0);
  outbox.Answer(0, 2);
  outbox.Rewind(0);
  EXPECT_THAT(Ids(outbox.Take(0)), ElementsAre(1));
  EXPECT_NE(outbox.Answer(0, 1).operation, nullptr);
  EXPECT_FALSE(outbox.HasWaiting(0));
  outbox.Add(Push());
  EXPECT_THAT(Ids(outbox.Take(0)), ElementsAre(3));
}

TEST(ShardOutboxTest, NoPushLeavesAWindowAheadOfAnUnansweredOne) {
  ShardOutbox outbox(2, {.message_operations = 100000});
  outbox.Add(Push(0));
  outbox.Take(0);  // sequence 1
  for (uint64_t i = 0; i < 2 * kDedupWindow; ++i) outbox.Add(Push(1));
  EXPECT_EQ(outbox.Take(1).size(), kDedupWindow - 1);
  outbox.Add(Push(0));
  EXPECT_THAT(outbox.Take(0), IsEmpty());
  for (uint64_t id = 1; id < kDedupWindow; ++id) outbox.Answer(1, id);
  EXPECT_THAT(outbox.Take(1), IsEmpty()) << "1 is not answered";
  outbox.Answer(0, 1);
  const ShardOutbox::Message next = outbox.Take(1);
  EXPECT_EQ(next.size(), kDedupWindow);
  EXPECT_EQ(next.front().sequence, kDedupWindow + 1);
}

TEST(ShardOutboxTest, APullLeavesThoughTheWindowIsFull) {
  ShardOutbox outbox(2, {.message_operations = 100000});
  for (uint64_t i = 0; i <= kDedupWindow; ++i) outbox.Add(Push(0));
  EXPECT_EQ(outbox.Take(0).size(), kDedupWindow);
  outbox.Add(Pull(1));
  EXPECT_EQ(outbox.Take(1).size(), 1u);
}

TEST(ShardOutboxTest, ALaneHasSoManyBytesAndRequestsInFlight) {
  ShardOutbox outbox(2, {.in_flight_bytes = 10, .in_flight_operations = 3});
  outbox.Add(Push(0, 100));
  for (int i = 0; i < 4; ++i) outbox.Add(Push(0, 1));
  EXPECT_THAT(Ids(outbox.Take(0)), ElementsAre(1)) << "alone, but it leaves";
  EXPECT_THAT(outbox.Take(0), IsEmpty());
  outbox.Answer(0, 1);
  EXPECT_THAT(Ids(outbox.Take(0)), ElementsAre(2, 3, 4));
  outbox.Answer(0, 3);
  EXPECT_THAT(Ids(outbox.Take(0)), ElementsAre(5));
  outbox.Add(Push(1, 1));
  EXPECT_THAT(Ids(outbox.Take(1)), ElementsAre(1)) << "a lane of its own";
}

TEST(ShardOutboxTest, TheCallerWritesLittleUnlessFourOperationsAreInFlight) {
  ShardOutbox outbox(2, {.message_operations = 1});
  for (int in_flight = 0; in_flight < 4; ++in_flight) {
    EXPECT_FALSE(outbox.LeavesInTurn(0)) << "nothing waits";
    outbox.Add(Push(0, 4));
    EXPECT_FALSE(outbox.LeavesInTurn(0)) << in_flight;
    EXPECT_EQ(outbox.Take(0).size(), 1u);
  }
  EXPECT_FALSE(outbox.LeavesInTurn(0)) << "nothing waits";
  outbox.Add(Push(0, 4));
  EXPECT_TRUE(outbox.LeavesInTurn(0));
  outbox.Add(Push(1, 4));
  EXPECT_FALSE(outbox.LeavesInTurn(1)) << "another lane is not busy";
  outbox.Answer(0, 2);
  EXPECT_FALSE(outbox.LeavesInTurn(0)) << "three are in flight";
}

TEST(ShardOutboxTest, TheLoopWritesWhatIsMuch) {
  ShardOutbox outbox(1, {.in_flight_operations = 1});
  outbox.Add(Pull(0, ShardOutbox::kTurnBytes - 1));
  EXPECT_FALSE(outbox.LeavesInTurn(0));
  outbox.Add(Pull(0, 1));
  EXPECT_TRUE(outbox.LeavesInTurn(0)) << "both together";
  EXPECT_EQ(outbox.Take(0).size(), 1u);
  outbox.Add(Pull(0, ShardOutbox::kTurnBytes));
  EXPECT_FALSE(outbox.LeavesInTurn(0)) << "an answer must come first";
}

TEST(ShardOutboxTest, WhatWaitsForOtherWorkersHoldsNothingBack) {
  ShardOutbox outbox(
      1, {.message_bytes = 1, .in_flight_bytes = 2, .in_flight_operations = 2});
  for (uint64_t i = 0; i < 2 * kDedupWindow; ++i) outbox.Add(SyncPush(0, 1));
  for (uint64_t i = 0; i < 2 * kDedupWindow; ++i) {
    EXPECT_THAT(Sequences(outbox.Take(0)), ElementsAre(0));
  }
  outbox.Add(Pull(0, 1));
  EXPECT_EQ(outbox.owed(), 1u);
  EXPECT_EQ(outbox.in_flight(0), 0u);
  EXPECT_EQ(outbox.Take(0).size(), 1u);
  EXPECT_EQ(outbox.owed(), 1u);
  EXPECT_EQ(outbox.in_flight(0), 1u) << "without those that wait for others";
  outbox.Answer(0, 2 * kDedupWindow + 1);
  EXPECT_EQ(outbox.owed(), 0u);
  EXPECT_EQ(outbox.in_flight(0), 0u);
  outbox.Rewind(0);
  EXPECT_EQ(outbox.owed(), 2 * kDedupWindow);
}

TEST(ShardOutboxTest, WhatIsGivenUpIsNotWaitedFor) {
  ShardOutbox outbox(1, {.message_operations = 100000});
  for (uint64_t i = 0; i < kDedupWindow + 1; ++i) outbox.Add(Push());
  EXPECT_EQ(outbox.Take(0).size(), kDedupWindow);
  EXPECT_EQ(outbox.TakeAll().size(), kDedupWindow + 1);
  EXPECT_EQ(outbox.unanswered(), 0u);
  EXPECT_EQ(outbox.owed(), 0u);
  EXPECT_EQ(outbox.Answer(0, 1).operation, nullptr);
  outbox.Add(Push());
  const ShardOutbox::Message next = outbox.Take(0);
  EXPECT_THAT(Ids(next), ElementsAre(kDedupWindow + 2));
  EXPECT_THAT(Sequences(next), ElementsAre(kDedupWindow + 1));
}

}  // namespace
}  // namespace parasol
