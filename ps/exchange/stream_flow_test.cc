#include "ps/exchange/stream_flow.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps/exchange/pending_responses.h"
#include "ps/exchange/testing/results.h"
#include "ps/operation/operation.h"

namespace parasol {
namespace {

using testing::ElementsAre;

using Admission = StreamFlow::Admission;
using Message = PendingResponses::Message;

constexpr bool kRoom = true;
constexpr bool kNoRoom = false;

// Makes the flow carry out a message, the next one being read.
void Receive(StreamFlow& flow) {
  flow.NextRead(kRoom);
  EXPECT_TRUE(flow.OnRead(true));
  flow.BeginMessage(/*more=*/false);
  EXPECT_TRUE(flow.NextRead(kRoom));
}

// Makes a flow whose operations 1 to `operations` wait.
StreamFlow WithWaiting(uint64_t operations) {
  StreamFlow flow;
  Receive(flow);
  for (uint64_t id = 1; id <= operations; ++id) {
    EXPECT_EQ(flow.Admit({.id = id}, kRoom), Admission::kServe);
  }
  flow.Rest(/*paused=*/false, kRoom);
  flow.Settle();
  return flow;
}

TEST(StreamFlowTest, OneMessageIsReadAheadAndNoMore) {
  StreamFlow flow;
  EXPECT_TRUE(flow.NextRead(kRoom));
  EXPECT_FALSE(flow.NextRead(kRoom)) << "a read is under way";
  EXPECT_TRUE(flow.OnRead(true));
  EXPECT_FALSE(flow.NextRead(kRoom)) << "the message has not been begun";
  flow.BeginMessage(/*more=*/false);
  EXPECT_TRUE(flow.NextRead(kRoom));
}

TEST(StreamFlowTest, APausedStreamIsNotRead) {
  StreamFlow flow;
  EXPECT_FALSE(flow.NextRead(kNoRoom));
  flow.NextRead(kRoom);
  flow.OnRead(true);
  flow.BeginMessage(/*more=*/false);
  EXPECT_FALSE(flow.NextRead(kNoRoom));
  EXPECT_EQ(flow.Admit({.id = 1}, kNoRoom), Admission::kPause);
  const StreamFlow::Actions next = flow.Rest(/*paused=*/true, kNoRoom);
  EXPECT_FALSE(next.read);
  EXPECT_TRUE(next.retry);
  flow.OnRetry();
  EXPECT_EQ(flow.Admit({.id = 1}, kRoom), Admission::kServe);
  EXPECT_TRUE(flow.Rest(/*paused=*/false, kRoom).read);
}

TEST(StreamFlowTest, AStreamThatMayNotReadLooksAgain) {
  StreamFlow flow;
  const StreamFlow::Actions next = flow.Rest(/*paused=*/false, kNoRoom);
  EXPECT_FALSE(next.read);
  EXPECT_TRUE(next.retry);
}

TEST(StreamFlowTest, AStreamThatIsHeldBackWaitsForItsWriteOrElseForARetry) {
  StreamFlow flow;
  Receive(flow);
  EXPECT_EQ(flow.Admit({.id = 1}, kRoom), Admission::kServe);
  flow.Answer({.id = 1}, OperationResult());
  const StreamFlow::Actions writes = flow.Rest(/*paused=*/true, kNoRoom);
  EXPECT_THAT(Ids(writes.write), ElementsAre(1));
  EXPECT_FALSE(writes.retry);
  flow.OnWritten(true);
  EXPECT_TRUE(flow.Rest(/*paused=*/true, kNoRoom).retry);
  EXPECT_FALSE(flow.Rest(/*paused=*/true, kNoRoom).retry) << "the second one";
}

TEST(StreamFlowTest, ResultsAreCollectedWhileMessagesAreCarriedOut) {
  StreamFlow flow;
  Receive(flow);
  for (const uint64_t id : {1, 2, 3}) {
    flow.Admit({.id = id}, kRoom);
    EXPECT_FALSE(flow.Answer({.id = id}, OperationResult()).has_value());
  }
  EXPECT_THAT(Ids(flow.Rest(/*paused=*/false, kRoom).write),
              ElementsAre(1, 2, 3));
}

// Makes the flow answer the only operation of a message that others follow.
StreamFlow::Actions AnswerWithMoreToCome(StreamFlow& flow) {
  flow.NextRead(kRoom);
  flow.OnRead(true);
  flow.BeginMessage(/*more=*/true);
  flow.NextRead(kRoom);
  flow.Admit({.id = 1}, kRoom);
  flow.Answer({.id = 1}, OperationResult());
  return flow.Rest(/*paused=*/false, kRoom);
}

TEST(StreamFlowTest, ResultsAreHeldBackForTheMessageThatIsBeingRead) {
  StreamFlow flow;
  EXPECT_FALSE(AnswerWithMoreToCome(flow).write.has_value());
  flow.OnRead(true);
  flow.BeginMessage(/*more=*/false);
  flow.Admit({.id = 2}, kRoom);
  flow.Answer({.id = 2}, OperationResult());
  EXPECT_THAT(Ids(flow.Rest(/*paused=*/false, kRoom).write), ElementsAre(1, 2));
}

TEST(StreamFlowTest, ResultsAreNotHeldBackIfNothingMoreComes) {
  StreamFlow flow;
  EXPECT_FALSE(AnswerWithMoreToCome(flow).write.has_value());
  EXPECT_FALSE(flow.OnRead(false));
  EXPECT_THAT(Ids(flow.Rest(/*paused=*/false, kRoom).write), ElementsAre(1));
}

TEST(StreamFlowTest, ResultsAreNotHeldBackIfNothingMoreIsRead) {
  StreamFlow flow;
  flow.NextRead(kRoom);
  flow.OnRead(true);
  flow.BeginMessage(/*more=*/true);
  flow.Admit({.id = 1}, kRoom);
  flow.Answer({.id = 1}, OperationResult());
  EXPECT_THAT(Ids(flow.Rest(/*paused=*/false, kNoRoom).write), ElementsAre(1));
}

// Its results may be what leaves no room.
TEST(StreamFlowTest, ResultsOfAPausedMessageAreNotHeldBack) {
  StreamFlow flow;
  flow.NextRead(kRoom);
  flow.OnRead(true);
  flow.BeginMessage(/*more=*/true);
  flow.NextRead(kRoom);
  flow.Admit({.id = 1}, kRoom);
  flow.Answer({.id = 1}, OperationResult());
  EXPECT_EQ(flow.Admit({.id = 2}, kNoRoom), Admission::kPause);
  EXPECT_THAT(Ids(flow.Rest(/*paused=*/true, kNoRoom).write), ElementsAre(1));
}

TEST(StreamFlowTest, AnEndSendsWhatWasHeldBack) {
  StreamFlow flow;
  EXPECT_FALSE(AnswerWithMoreToCome(flow).write.has_value());
  EXPECT_FALSE(flow.NextHeldWrite().has_value()) << "nothing has ended";
  flow.End(absl::UnavailableError("leaves"));
  EXPECT_THAT(Ids(flow.NextHeldWrite()), ElementsAre(1));
  EXPECT_FALSE(flow.NextFinish().has_value()) << "the write is under way";
}

TEST(StreamFlowTest, AFullMessageOfResultsIsWrittenAtOnce) {
  StreamFlow flow;
  Receive(flow);
  flow.Admit({.id = 1}, kRoom);
  flow.Admit({.id = 2}, kRoom);
  const size_t limit = PendingResponses::kResponseBytes;
  EXPECT_FALSE(flow.Answer({.id = 1}, Pulled(limit - 1)).has_value());
  EXPECT_THAT(Ids(flow.Answer({.id = 2}, Pulled(1))), ElementsAre(1, 2));
}

TEST(StreamFlowTest,
     AResultThatComesLaterIsWrittenAtOnceUnlessAWriteIsUnderWay) {
  StreamFlow flow = WithWaiting(3);
  EXPECT_THAT(Ids(flow.Answer({.id = 2}, OperationResult())), ElementsAre(2));
  EXPECT_FALSE(flow.Answer({.id = 1}, OperationResult()).has_value());
  EXPECT_FALSE(flow.Answer({.id = 3}, absl::NotFoundError("")).has_value());
  flow.OnWritten(true);
  EXPECT_THAT(Ids(flow.Rest(/*paused=*/false, kRoom).write), ElementsAre(1, 3));
}

TEST(StreamFlowTest, ResultsAreLimitedByNumber) {
  StreamFlow flow;
  Receive(flow);
  for (uint64_t id = 1; id <= StreamFlow::kMaxPendingResults; ++id) {
    ASSERT_EQ(flow.Admit({.id = id}, kRoom), Admission::kServe) << id;
    flow.Answer({.id = id}, OperationResult());
  }
  EXPECT_EQ(flow.Admit({.id = 0}, kRoom), Admission::kPause);
  EXPECT_TRUE(flow.Rest(/*paused=*/true, kRoom).write.has_value());
  EXPECT_EQ(flow.Admit({.id = 0}, kRoom), Admission::kServe);
}

TEST(StreamFlowTest, ManyOperationsWaitAndTheNextIsRefused) {
  StreamFlow flow = WithWaiting(StreamFlow::kMaxUnanswered);
  EXPECT_EQ(flow.Admit({.id = 0}, kRoom), Admission::kRefuse);
  flow.Answer({.id = 0}, absl::ResourceExhaustedError(""));
  EXPECT_EQ(flow.Admit({.id = 0}, kRoom), Admission::kRefuse);
  flow.Answer({.id = 0}, absl::ResourceExhaustedError(""));
  flow.Answer({.id = 1}, OperationResult());
  EXPECT_EQ(flow.Admit({.id = 0}, kRoom), Admission::kServe);
}

TEST(StreamFlowTest, ManyBytesAreKeptAndTheNextIsRefused) {
  StreamFlow flow;
  const StreamFlow::Operation all = {.id = 1,
                                     .kept_bytes = StreamFlow::kMaxKeptBytes};
  const StreamFlow::Operation byte = {.id = 2, .kept_bytes = 1};
  EXPECT_EQ(flow.Admit(all, kRoom), Admission::kServe);
  EXPECT_EQ(flow.Admit(byte, kRoom), Admission::kRefuse);
  flow.Answer(byte, absl::ResourceExhaustedError(""));
  EXPECT_EQ(flow.Admit({.id = 3}, kRoom), Admission::kServe) << "keeps nothing";
  flow.Answer(all, OperationResult());
  EXPECT_EQ(flow.Admit(byte, kRoom), Admission::kServe);
}

TEST(StreamFlowTest, APullThatHasWaitedIsReadWhenThereIsRoom) {
  StreamFlow flow = WithWaiting(2);
  EXPECT_TRUE(flow.AddDue({.id = 2}, Waited()));
  EXPECT_TRUE(flow.AddDue({.id = 1}, Waited()));
  const StreamFlow::DueActions none = flow.NextDue(kNoRoom);
  EXPECT_FALSE(none.due.has_value());
  EXPECT_TRUE(none.retry);
  EXPECT_FALSE(flow.NextDue(kNoRoom).retry) << "the second one";
  EXPECT_EQ(flow.NextDue(kRoom).due->operation.id, 2u);
  EXPECT_EQ(flow.NextDue(kRoom).due->operation.id, 1u);
  EXPECT_FALSE(flow.NextDue(kRoom).due.has_value());
}

TEST(StreamFlowTest, APullThatIsDueComesBackAfterTheWrite) {
  StreamFlow flow = WithWaiting(2);
  EXPECT_TRUE(flow.Answer({.id = 1}, OperationResult()).has_value());
  EXPECT_TRUE(flow.AddDue({.id = 2}, Waited()));
  EXPECT_FALSE(flow.NextDue(kNoRoom).retry);
  flow.OnWritten(true);
  EXPECT_TRUE(flow.NextDue(kNoRoom).retry);
}

TEST(StreamFlowTest, AStreamThatWasReadFinishesWhenAllIsAnswered) {
  StreamFlow flow = WithWaiting(1);
  EXPECT_FALSE(flow.OnRead(false));
  EXPECT_FALSE(flow.Rest(/*paused=*/false, kRoom).finish.has_value());
  EXPECT_THAT(Ids(flow.Answer({.id = 1}, OperationResult())), ElementsAre(1));
  EXPECT_FALSE(flow.NextFinish().has_value()) << "a write is under way";
  flow.OnWritten(true);
  EXPECT_EQ(flow.Rest(/*paused=*/false, kRoom).finish->status,
            absl::OkStatus());
}

TEST(StreamFlowTest, AnEndWaitsForWhatIsCarriedOutAndNotForWhatWaits) {
  StreamFlow flow = WithWaiting(1);
  EXPECT_TRUE(flow.OnRead(true));
  flow.End(absl::UnavailableError("first"));
  flow.End(absl::UnknownError("second"));
  EXPECT_FALSE(flow.NextFinish().has_value()) << "a message was read";
  flow.BeginMessage(/*more=*/false);
  EXPECT_FALSE(flow.NextRead(kRoom));
  EXPECT_EQ(flow.Admit({.id = 2}, kRoom), Admission::kServe);
  flow.Answer({.id = 2}, OperationResult());
  const StreamFlow::Actions writes = flow.Rest(/*paused=*/false, kRoom);
  EXPECT_THAT(Ids(writes.write), ElementsAre(2));
  EXPECT_FALSE(writes.finish.has_value());
  flow.OnWritten(true);
  const StreamFlow::Actions ends = flow.Rest(/*paused=*/false, kRoom);
  EXPECT_EQ(ends.finish->status, absl::UnavailableError("first"));
}

TEST(StreamFlowTest, NothingBeginsAfterTheFinish) {
  StreamFlow flow = WithWaiting(3);
  EXPECT_TRUE(flow.AddDue({.id = 1}, Waited()));
  flow.End(absl::OkStatus());
  const std::optional<StreamFlow::Finish> finish = flow.NextFinish();
  ASSERT_TRUE(finish.has_value());
  EXPECT_EQ(finish->dropped.size(), 1u);
  EXPECT_FALSE(flow.NextFinish().has_value());
  EXPECT_FALSE(flow.Answer({.id = 2}, OperationResult()).has_value());
  EXPECT_FALSE(flow.AddDue({.id = 3}, Waited()));
  EXPECT_FALSE(flow.OnRead(true)) << "read too late";
  const StreamFlow::Actions next = flow.Rest(/*paused=*/true, kNoRoom);
  EXPECT_FALSE(next.read || next.retry);
  EXPECT_FALSE(next.write.has_value());
  EXPECT_FALSE(next.finish.has_value());
}

TEST(StreamFlowTest, ACancelledStreamReleasesEverything) {
  const auto memory = std::make_shared<int>();
  StreamFlow flow = WithWaiting(4);
  EXPECT_TRUE(flow.Answer({.id = 1}, Pulled(1)).has_value());
  EXPECT_TRUE(flow.OnRead(true));
  EXPECT_FALSE(flow.Answer({.id = 2}, Pulled(1, memory)).has_value());
  OperationResult due = Waited();
  due.read = [memory] { return OperationResult(); };
  EXPECT_TRUE(flow.AddDue({.id = 3}, due));
  due = {};
  flow.OnCallDone(/*cancelled=*/true);
  flow.BeginMessage(/*more=*/false);
  EXPECT_EQ(flow.Admit({.id = 5}, kRoom), Admission::kDrop);
  EXPECT_FALSE(flow.Answer({.id = 4}, OperationResult()).has_value());
  EXPECT_FALSE(flow.NextDue(kRoom).due.has_value());
  EXPECT_FALSE(flow.Rest(/*paused=*/false, kRoom).finish.has_value())
      << "a write is under way";
  flow.OnWritten(false);
  EXPECT_TRUE(flow.Rest(/*paused=*/false, kRoom).finish.has_value());
  EXPECT_EQ(memory.use_count(), 1);
}

TEST(StreamFlowTest, AFailedWriteCancels) {
  StreamFlow flow = WithWaiting(1);
  EXPECT_TRUE(flow.Answer({.id = 1}, OperationResult()).has_value());
  flow.OnWritten(false);
  EXPECT_TRUE(flow.Rest(/*paused=*/false, kRoom).finish.has_value());
}

TEST(StreamFlowTest, TheLastThatWasUnderWaySettlesTheStream) {
  StreamFlow flow;
  flow.NextRead(kRoom);
  flow.OnRead(false);
  EXPECT_TRUE(flow.Rest(/*paused=*/false, kRoom).finish.has_value());
  EXPECT_FALSE(flow.Settle()) << "the call and its finish";
  EXPECT_FALSE(flow.Settle());
  EXPECT_TRUE(flow.Settle());
}

}  // namespace
}  // namespace parasol
