// Random schedules of a stream: what its flow decides keeps its promises in
// whatever order things happen.

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
#include "ps/exchange/stream_flow.h"
#include "ps/exchange/testing/results.h"
#include "ps/operation/operation.h"

namespace parasol {
namespace {

using Admission = StreamFlow::Admission;
using Message = PendingResponses::Message;

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
        // A worker may say so and send no more.
        flow_.BeginMessage(/*more=*/Below(2) == 0);
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
    BeginWrite(flow_.NextHeldWrite());
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

TEST(StreamFlowSimulationTest,
     AStreamOfAnyScheduleAnswersEachOperationOnceAndFinishes) {
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

TEST(StreamFlowSimulationTest, AStreamOfAnyScheduleEndsThoughOperationsWait) {
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

TEST(StreamFlowSimulationTest, AStreamOfAnyScheduleEndsWhenItsCallIsBroken) {
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
