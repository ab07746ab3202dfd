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
#include "ps/operation/operation.h"

namespace parasol {
namespace {

using testing::ElementsAre;

using Admission = StreamFlow::Admission;
using Message = PendingResponses::Message;

constexpr bool kRoom = true;
constexpr bool kNoRoom = false;

// The result of a pull of `bytes` bytes, which `owner` keeps.
OperationResult Pulled(size_t bytes, std::shared_ptr<const void> owner = {}) {
  OperationResult result;
  result.payloads.push_back(
      {.data = nullptr, .size = bytes, .owner = std::move(owner)});
  return result;
}

OperationResult Waited() {
  OperationResult result;
  result.read = [] { return OperationResult(); };
  return result;
}

std::vector<uint64_t> Ids(const std::optional<Message>& message) {
  std::vector<uint64_t> ids;
  if (!message.has_value()) return ids;
  for (const wire::Result& result : message->header.result()) {
    ids.push_back(result.id());
  }
  return ids;
}

// Makes the flow carry out a message, the next one being read.
void Receive(StreamFlow& flow) {
  flow.NextRead(kRoom);
  EXPECT_TRUE(flow.OnRead(true));
  flow.BeginMessage();
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
  flow.BeginMessage();
  EXPECT_TRUE(flow.NextRead(kRoom));
}

TEST(StreamFlowTest, APausedStreamIsNotRead) {
  StreamFlow flow;
  EXPECT_FALSE(flow.NextRead(kNoRoom));
  flow.NextRead(kRoom);
  flow.OnRead(true);
  flow.BeginMessage();
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
  flow.BeginMessage();
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
  flow.BeginMessage();
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

// The end of a simulated stream.
enum class Ending {
  kWorkerIsDone,
  kServerEnds,    // End() at any moment, while operations wait forever
  kCallIsBroken,  // the call is cancelled at any moment, likewise
};

// One stream that does what its flow decides, in one run of a random schedule.
// What is under way completes in any order; operations that wait are answered
// at any moment, also between two operations of a message.
class StreamSimulation {
 public:
  StreamSimulation(Ending ending, uint64_t seed)
      : ending_(ending), random_(seed), messages_(1 + Below(20)) {}

  // Checks the invariants while it runs. Returns false if it did not come to
  // its end.
  bool Run() {
    if (flow_.NextRead(Room())) BeginRead();
    while (!settled_) {
      if (!Step()) return false;
    }
    while (AnswerOneThatWaits(/*even_stuck=*/true)) {
    }
    return true;
  }

  // Numbers of what the simulation is meant to test.
  size_t pauses = 0;
  size_t retries = 0;
  size_t writes = 0;
  size_t dues = 0;

  size_t admitted() const { return admitted_; }
  size_t answered() const { return written_; }
  size_t served_at_once() const { return served_at_once_; }
  const absl::Status& status() const { return *status_; }
  // Returns true if the server has ended the stream before the worker was done.
  bool ended_in_time() const { return ended_in_time_; }

 private:
  struct Waiting {
    StreamFlow::Operation operation;
    bool is_stuck = false;
  };

  size_t Below(size_t n) { return random_() % n; }

  // A stream none of whose responses is held has room (BufferBudget). What was
  // written is released at any moment, of which the stream is not told.
  bool Room() {
    if (Below(4) == 0) unreleased_ = false;
    const bool holds = writing_ || unreleased_ || answered_ > written_;
    return !holds || Below(3) == 0;
  }

  void BeginRead() {
    EXPECT_FALSE(reading_) << "two reads";
    reading_ = true;
  }

  void BeginRetry() {
    EXPECT_FALSE(retrying_) << "two retries";
    retrying_ = true;
    ++retries;
  }

  void BeginWrite(const std::optional<Message>& message) {
    if (!message.has_value()) return;
    EXPECT_FALSE(writing_) << "two writes";
    EXPECT_FALSE(status_.has_value()) << "a write after the finish";
    writing_ = unreleased_ = true;
    ++writes;
    for (const uint64_t id : Ids(message)) {
      EXPECT_LT(id, was_written_.size());
      EXPECT_FALSE(was_written_[id]) << "operation " << id << " answered twice";
      was_written_[id] = true;
      ++written_;
    }
  }

  void BeginFinish(const std::optional<StreamFlow::Finish>& finish) {
    if (!finish.has_value()) return;
    EXPECT_FALSE(status_.has_value()) << "two finishes";
    EXPECT_FALSE(writing_) << "a finish during a write";
    status_ = finish->status;
    finishing_ = true;
  }

  void Deliver(const StreamFlow::Operation& operation, OperationResult result) {
    if (result.read != nullptr) {
      if (flow_.AddDue(operation, std::move(result))) ReadDue();
      return;
    }
    // It is dropped if the stream is over: it counts as written.
    if (status_.has_value() || cancelled_) {
      EXPECT_FALSE(flow_.Answer(operation, std::move(result)).has_value());
      return;
    }
    ++answered_;
    BeginWrite(flow_.Answer(operation, std::move(result)));
  }

  void ReadDue() {
    for (;;) {
      const StreamFlow::DueActions next = flow_.NextDue(Room());
      if (next.retry) BeginRetry();
      if (!next.due.has_value()) return;
      ++dues;
      Deliver(next.due->operation, *next.due->result->read());
    }
  }

  bool AnswerOneThatWaits(bool even_stuck) {
    for (size_t tries = waiting_.size(); tries > 0; --tries) {
      std::swap(waiting_[Below(waiting_.size())], waiting_.back());
      if (waiting_.back().is_stuck && !even_stuck) continue;
      const StreamFlow::Operation operation = waiting_.back().operation;
      waiting_.pop_back();
      Deliver(operation, Below(2) == 0 ? Waited() : Pulled(Below(1 << 20)));
      return true;
    }
    return false;
  }

  // Carries out operations until the message is done. Returns false if it
  // paused.
  bool Serve() {
    for (; left_ > 0; --left_) {
      if (Below(4) == 0) AnswerOneThatWaits(/*even_stuck=*/false);
      const StreamFlow::Operation operation = {.id = admitted_};
      switch (flow_.Admit(operation, Room())) {
        case Admission::kServe:
          break;
        case Admission::kPause:
          ++pauses;
          return false;
        case Admission::kDrop:
          EXPECT_TRUE(cancelled_);
          left_ = 0;
          return true;
        case Admission::kRefuse:
          ADD_FAILURE() << "the messages have few operations";
          return true;
      }
      ++admitted_;
      was_written_.push_back(false);
      if (Below(3) == 0) {
        waiting_.push_back(
            {.operation = operation,
             .is_stuck = ending_ != Ending::kWorkerIsDone && Below(2) == 0});
      } else {
        ++served_at_once_;
        Deliver(operation, Pulled(Below(1 << 19)));
      }
    }
    return true;
  }

  // As ExchangeStream::Advance().
  void Advance() {
    ReadDue();
    bool paused = false;
    while (!paused && (left_ > 0 || received_ > 0)) {
      if (left_ == 0) {
        left_ = std::exchange(received_, 0);
        flow_.BeginMessage();
      }
      if (flow_.NextRead(Room())) BeginRead();
      paused = !Serve();
    }
    const StreamFlow::Actions next = flow_.Rest(paused, Room());
    Settle();
    if (next.read) BeginRead();
    if (next.retry) BeginRetry();
    BeginWrite(next.write);
    BeginFinish(next.finish);
  }

  void Settle() {
    EXPECT_FALSE(settled_);
    settled_ = flow_.Settle();
  }

  void CompleteRead() {
    reading_ = false;
    const bool ok = messages_ > 0 && !cancelled_ && !status_.has_value();
    if (ok) --messages_;
    const size_t operations = 1 + Below(30);
    if (flow_.OnRead(ok)) {
      EXPECT_EQ(received_, 0u) << "two messages read ahead";
      received_ = operations;
    }
    Advance();
  }

  // Something that may happen now happens. Returns false if there is nothing.
  bool Step() {
    const bool breaks = ending_ == Ending::kCallIsBroken && !cancelled_ &&
                        call_open_ && Below(60) == 0;
    const bool ends = ending_ == Ending::kServerEnds && !ended_;
    std::vector<void (StreamSimulation::*)()> possible;
    if (reading_) possible.push_back(&StreamSimulation::CompleteRead);
    if (writing_) possible.push_back(&StreamSimulation::CompleteWrite);
    if (retrying_) possible.push_back(&StreamSimulation::CompleteRetry);
    if (finishing_) possible.push_back(&StreamSimulation::CompleteFinish);
    if (call_open_ && (breaks || finished_)) {
      possible.push_back(&StreamSimulation::CompleteCall);
    }
    if (ends && (Below(60) == 0 || possible.empty())) {
      possible.push_back(&StreamSimulation::EndByServer);
    }
    if (possible.empty() || Below(8) == 0) {
      if (AnswerOneThatWaits(/*even_stuck=*/false)) return true;
    }
    if (possible.empty() && ending_ == Ending::kCallIsBroken && call_open_) {
      possible.push_back(&StreamSimulation::CompleteCall);
    }
    if (possible.empty()) return false;
    (this->*possible[Below(possible.size())])();
    return true;
  }

  void CompleteWrite() {
    writing_ = false;
    flow_.OnWritten(!cancelled_);
    Advance();
  }
  void CompleteRetry() {
    retrying_ = false;
    flow_.OnRetry();
    Advance();
  }
  void CompleteCall() {
    call_open_ = false;
    cancelled_ = ending_ == Ending::kCallIsBroken && !finished_;
    flow_.OnCallDone(cancelled_);
    Advance();
  }
  void CompleteFinish() {
    finishing_ = false;
    finished_ = true;
    Settle();
  }
  void EndByServer() {
    ended_ = true;
    ended_in_time_ = !status_.has_value();
    flow_.End(absl::UnavailableError("ends"));
    BeginFinish(flow_.NextFinish());
  }

  const Ending ending_;
  std::mt19937_64 random_;
  StreamFlow flow_;
  size_t messages_;  // that the worker has not sent

  // What is under way.
  bool reading_ = false;
  bool writing_ = false;
  bool retrying_ = false;
  bool finishing_ = false;
  bool call_open_ = true;
  bool unreleased_ = false;  // the transport holds responses that were written

  size_t received_ = 0;  // operations of the message that was read ahead
  size_t left_ = 0;      // operations of the message that is carried out
  std::vector<Waiting> waiting_;
  std::vector<bool> was_written_;  // of each admitted operation
  size_t admitted_ = 0;
  size_t served_at_once_ = 0;
  size_t answered_ = 0;
  size_t written_ = 0;

  bool cancelled_ = false;
  bool ended_ = false;
  bool ended_in_time_ = false;
  bool finished_ = false;
  bool settled_ = false;
  std::optional<absl::Status> status_;
};

constexpr uint64_t kSeeds = 500;

TEST(StreamFlowTest, AStreamOfAnyScheduleAnswersEachOperationOnceAndFinishes) {
  size_t pauses = 0, retries = 0, writes = 0, dues = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    StreamSimulation stream(Ending::kWorkerIsDone, seed);
    ASSERT_TRUE(stream.Run());
    EXPECT_EQ(stream.answered(), stream.admitted());
    EXPECT_EQ(stream.status(), absl::OkStatus());
    pauses += stream.pauses;
    retries += stream.retries;
    writes += stream.writes;
    dues += stream.dues;
  }
  EXPECT_GT(pauses, kSeeds);
  EXPECT_GT(retries, kSeeds);
  EXPECT_GT(writes, kSeeds);
  EXPECT_GT(dues, kSeeds);
}

TEST(StreamFlowTest, AStreamOfAnyScheduleEndsThoughOperationsWait) {
  size_t unanswered = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    StreamSimulation stream(Ending::kServerEnds, seed);
    ASSERT_TRUE(stream.Run());
    EXPECT_GE(stream.answered(), stream.served_at_once());
    EXPECT_EQ(stream.status(), stream.ended_in_time()
                                   ? absl::UnavailableError("ends")
                                   : absl::OkStatus());
    unanswered += stream.admitted() - stream.answered();
  }
  EXPECT_GT(unanswered, kSeeds);
}

TEST(StreamFlowTest, AStreamOfAnyScheduleEndsWhenItsCallIsBroken) {
  size_t unanswered = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    StreamSimulation stream(Ending::kCallIsBroken, seed);
    ASSERT_TRUE(stream.Run());
    unanswered += stream.admitted() - stream.answered();
  }
  EXPECT_GT(unanswered, kSeeds);
}

}  // namespace
}  // namespace parasol
