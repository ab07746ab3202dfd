#ifndef PARASOL_PS_EXCHANGE_STREAM_FLOW_H_
#define PARASOL_PS_EXCHANGE_STREAM_FLOW_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cluster/rpc/protocol_limits.h"
#include "ps/exchange/pending_responses.h"
#include "ps/operation/operation.h"

namespace parasol {

// The flow control of one Exchange call: the decision when the stream reads,
// carries out an operation, writes, looks again later and finishes. The results
// that wait to be written or read wait here. Pure bookkeeping, without gRPC,
// threads, locks or time: the stream tells what has happened and does what it
// is told to do next.
//
// A stream has at most two messages: one whose operations are being carried
// out, and one that was read ahead. `has_room` says whether the stream may take
// more of the buffers (BufferBudget::Share::MayTakeMore()); without it the
// stream neither reads nor carries out anything.
//
// Invariants:
//   - At most one read, one write and one retry are under way, and one finish
//     ever is. No write is under way when the finish begins, and nothing begins
//     after it.
//   - A stream that is cancelled finishes as soon as no write is under way. A
//     stream that End() was called on finishes when the results of what was
//     read are written, except those that still wait.
//   - A stream that is held back has a write or a retry under way, and goes on
//     after it.
//
// Not thread-safe.
class StreamFlow {
 public:
  // Limit on the results that wait to be written. They are limited by number
  // because small ones have no share of the buffers.
  static constexpr size_t kMaxPendingResults =
      4 * PendingResponses::kResponseResults;
  // Limit on the operations that are being carried out or wait.
  static constexpr size_t kMaxUnanswered = 16 * kMaxOperationsPerMessage;
  // Limit on the bytes of ids that the waiting operations keep: the size of the
  // largest message that the worker may send, whose ids several pulls have.
  static constexpr size_t kMaxKeptBytes = kMaxMessageBytes;

  // An operation from Admit() until Answer().
  struct Operation {
    uint64_t id = 0;
    // Bytes of the operation's payloads that are kept while it waits.
    size_t kept_bytes = 0;
  };

  // A pull that has waited and may now be read.
  struct Due {
    Operation operation;
    absl::StatusOr<OperationResult> result;
  };

  enum class Admission {
    kServe,
    kRefuse,  // too many wait: the operation is answered with an error
    kPause,   // no room: it is carried out later
    kDrop,    // the stream is cancelled: a result would not be sent
  };

  struct Finish {
    absl::Status status;
    // Pulls that are never read. They may be destroyed after the stream's lock
    // is released.
    std::deque<Due> dropped;
  };

  // The stream's next actions. Each is under way from now on.
  struct Actions {
    bool read = false;
    bool retry = false;
    std::optional<PendingResponses::Message> write = std::nullopt;
    std::optional<Finish> finish = std::nullopt;
  };
  struct DueActions {
    // The pull to read now; its result goes to Answer().
    std::optional<Due> due = std::nullopt;
    bool retry = false;
  };

  // OnRead() to OnCallDone() note that something under way has completed. Each
  // must be followed by Settle().
  //
  // A read has completed: `ok` with a message, otherwise the worker sends no
  // more. Returns true if the message's operations are to be carried out, false
  // if there is none or it comes too late.
  bool OnRead(bool ok);
  // A write has completed; the call is broken if not `ok`.
  void OnWritten(bool ok);
  void OnRetry() { retrying_ = false; }
  // Something has begun that only Settle() hears of.
  void OnOtherBegun() { ++under_way_; }
  // The call is over; it was under way from the start.
  void OnCallDone(bool cancelled) { cancelled_ |= cancelled; }

  // Notes that the call is to end with `status` as soon as what was read is
  // answered. The first call counts.
  void End(const absl::Status& status);

  // Notes that the message that was read last is being carried out. `more`: the
  // worker has sent another one with it, and waits for the results of both.
  void BeginMessage(bool more) {
    read_ahead_ = false;
    expects_more_ = more;
  }

  // Returns true if the stream must begin a read now.
  bool NextRead(bool has_room);

  // Decides on the next operation of the message. One that is served or refused
  // must be answered.
  Admission Admit(const Operation& operation, bool has_room);

  // Takes the pull's result, which is to be read when there is room. Returns
  // false, and leaves `result`, if it would not be sent any more.
  bool AddDue(const Operation& operation,
              absl::StatusOr<OperationResult>&& result);

  // Takes the pull that has been due longest, if it may be read now.
  DueActions NextDue(bool has_room);

  // Takes the operation's result. Returns the message to write now, if there is
  // any: while messages are being carried out, results are collected. Leaves
  // `result` if it would not be sent any more.
  std::optional<PendingResponses::Message> Answer(
      const Operation& operation, absl::StatusOr<OperationResult>&& result);

  // Returns the actions that follow when no more operations can be carried out
  // now. `paused`: Admit() has paused one, and so the message is not done.
  Actions Rest(bool paused, bool has_room);

  // Returns what Rest() has held back for the message that is being read, once
  // End() was called.
  std::optional<PendingResponses::Message> NextHeldWrite();

  // Returns the end of the call if its time has come.
  std::optional<Finish> NextFinish();

  // Counts what was under way and has completed. Returns true if that was the
  // last: nothing is under way or ever will be.
  bool Settle() { return --under_way_ == 0; }

 private:
  bool MayTakeMore(bool has_room) const {
    return has_room && pending_.results() < kMaxPendingResults;
  }
  // Returns true if the stream reads as soon as there is room.
  bool WantsRead() const;
  bool NextRetry();
  std::optional<PendingResponses::Message> NextWrite();

  // Number of reads, writes, retries, finishes and others under way, and the
  // call.
  int under_way_ = 1;
  bool reading_ = false;
  bool writing_ = false;
  bool retrying_ = false;
  bool finishing_ = false;
  // True if a message was read and is not being carried out yet.
  bool read_ahead_ = false;
  // True if results are better written with the results of the message that is
  // being read.
  bool expects_more_ = false;
  // True if there are messages whose operations have not all been carried out.
  bool busy_ = false;
  // True if the worker will send no more.
  bool read_all_ = false;
  bool cancelled_ = false;
  std::optional<absl::Status> end_;

  // Number of operations that are admitted and not answered.
  size_t unanswered_ = 0;
  size_t kept_bytes_ = 0;
  std::deque<Due> due_;
  PendingResponses pending_;
};

}  // namespace parasol

#endif  // PARASOL_PS_EXCHANGE_STREAM_FLOW_H_
