#ifndef PARASOL_CLUSTER_COLLECTIVE_GROUP_PROTOCOL_H_
#define PARASOL_CLUSTER_COLLECTIVE_GROUP_PROTOCOL_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cluster/collective/collective.h"
#include "cluster/collective/collective_group.h"
#include "cluster/collective/frame_header.h"
#include "cluster/collective/operation.h"
#include "cluster/collective/operation_spec.h"

namespace parasol {

// One rank's part in a group, as messages: what it sends when operations begin,
// messages come, ranks are lost and time passes. Pure: the caller has the
// connections, the clock and the threads. Messages between two ranks arrive in
// order.
//
// A rank tells all others which operation it begins. The first pieces leave at
// once, kMaxEarlyBytes to each rank at most; what is more, and pieces above
// kEagerBytes, leave when their receiver has begun the operation, straight to
// where they belong there. So memory for what comes early is bounded, and ranks
// may be far apart.
class GroupProtocol {
 public:
  struct Options {
    // A rank sends something to each other one at least so often ...
    absl::Duration heartbeat = absl::Milliseconds(500);
    // ... and one that is not heard for so long is lost.
    absl::Duration silence = absl::Seconds(2);
    // Bytes of one message; at most FrameHeader::kMaxPieceBytes.
    size_t chunk_bytes = 256 << 10;
    // Every sum is taken so, instead of as ChooseReduction() says.
    std::optional<ReductionAlgorithm> algorithm = std::nullopt;
  };
  // Bytes of a piece that leaves before its receiver has begun the operation,
  // and of all such pieces to one rank, at most. A sum of two pieces does not
  // wait for a word of the other rank then. What comes too early is copied once
  // more, so not all of a large pack is to.
  static constexpr size_t kEagerBytes = 256 << 10;
  static constexpr size_t kMaxEarlyBytes = 1 << 20;
  // Bytes that one rank may bring to an all-gather.
  static constexpr size_t kMaxGatherBytes = size_t{1} << 30;

  // A message that is to leave, after those before it to the same rank.
  struct Frame {
    int peer = 0;
    FrameHeader header;
    std::string own;                           // the bytes that follow, or
    absl::Span<const std::byte> payload = {};  // memory of the operation
    int step = -1;  // Sent() takes it, if it is not negative
  };
  // A callback that is to be called.
  struct Completion {
    Collective::Done done;
    absl::Status status;
  };

  GroupProtocol(CollectiveGroup group, const Options& options, absl::Time now);

  const CollectiveGroup& group() const { return group_; }
  const Options& options() const { return options_; }

  // Begins the rank's next operation.
  void Begin(OperationSpec spec, OperationMemory memory, Collective::Done done);

  // Notes the header of a message. Returns the memory for the bytes that
  // follow, or null if these are to be dropped. Without bytes the message is
  // complete.
  std::byte* OnHeader(int peer, const FrameHeader& header);
  // Notes that all bytes of a message have come that OnHeader() had memory for.
  void OnBytes(int peer, const FrameHeader& header);
  // Notes that the memory of a frame is not needed any more.
  void Sent(const Frame& frame);

  // Notes that something has come from the rank since the last Tick().
  void Heard(int peer) { peers_[peer].was_heard = true; }
  // Notes that the connection to a rank has ended.
  void OnClosed(int peer, const std::string& why);
  // Notes that a rank has sent what is no message of the group.
  void OnNonsense(int peer, const absl::Status& why);
  // Notes the time: sends heartbeats, and ends the group if a rank is silent.
  void Tick(absl::Time now);
  // Ends the group on all ranks.
  void Abort(const absl::Status& why);
  // Ends the group on this rank; operations that it has not completed end for
  // the others too.
  void Leave(const absl::Status& why);

  // Returns why the group has ended, or OK. Then the caller copies what it has
  // begun to send, drops the rest, and calls ReleaseOperations().
  const absl::Status& status() const { return status_; }
  // Frees what operations of a group that has ended were carried out in. Until
  // then frames and the memory that OnHeader() gave stay valid.
  void ReleaseOperations();
  // Returns the ranks that have not begun this rank's oldest operation.
  std::vector<int> Awaited() const;

  // Return what has come up since the last call.
  std::vector<Frame> TakeFrames();
  std::vector<Completion> TakeCompletions();

 private:
  // A piece that came before its operation could take it.
  struct EarlyPiece {
    uint64_t sequence = 0;
    uint64_t piece = 0;
    std::vector<std::byte> bytes;
    bool is_whole = false;  // all bytes have come; only the last may lack some
  };
  struct Peer {
    uint64_t begun = 0;
    // Operations that it has begun and this rank has not, in order.
    std::deque<OperationSpec> begins_ahead;
    std::deque<EarlyPiece> early;
    size_t early_bytes = 0;
    // Bytes of pieces that left for operations that it had not begun.
    std::map<uint64_t, size_t> eager;
    size_t eager_bytes = 0;
    std::optional<uint64_t> left;  // takes part in no operation from here on
    bool is_closed = false;
    bool was_heard = true;
    bool was_told = true;
    absl::Time heard;
    absl::Time told;
    std::string control;  // bytes of a message that is no piece
  };

  // Returns null, and ends the group, if the piece is not to be had.
  std::byte* PieceTarget(int peer, const FrameHeader& header);
  std::byte* EarlyTarget(int peer, const FrameHeader& header);
  void OnPiece(int peer, const FrameHeader& header);
  void OnBegin(int peer, const FrameHeader& header);
  void OnReady(int peer, uint64_t sequence);
  void OnLeave(int peer, uint64_t sequence);
  // Notes that the peer has begun an operation that this rank has begun, too.
  void NoteBegun(int peer, Operation& operation, const OperationSpec& spec);
  // Begins to carry the operation out, if all is known that it takes.
  void StartIfKnown(Operation& operation);
  void DeliverEarly(int peer, Operation& operation);
  void SetReady(int peer, Operation& operation);
  // Forgets what was sent to the peer before it could take it.
  void ReleaseEager(int peer, uint64_t sequence);
  // Notes the operations that other ranks have begun before this one.
  void NoteBegunAhead(Operation& operation);
  // Sends what can be, keeps the rest.
  void Route(Operation& operation, std::vector<PlanRun::Send> sends);
  bool MayLeave(const Operation& operation, const PlanRun::Send& send);
  void CompleteIfDone(uint64_t sequence);
  Operation* Find(uint64_t sequence);

  void SendTo(int peer, FrameKind kind, uint64_t sequence,
              std::string bytes = "");
  void SendToAll(FrameKind kind, uint64_t sequence, const std::string& bytes);
  std::unique_ptr<Operation> MakeOperation(OperationSpec spec,
                                           OperationMemory memory,
                                           Collective::Done done);
  ReductionAlgorithm AlgorithmFor(uint64_t elements);
  // Completes all operations with the error.
  void End(const absl::Status& why);
  void CheckSilence(absl::Time now);

  const CollectiveGroup group_;
  const Options options_;
  OperationMaker maker_;
  std::vector<Peer> peers_;  // one for each rank; the own one is unused
  uint64_t begun_ = 0;
  // Operations that are not complete, or were not when the group ended.
  std::map<uint64_t, std::unique_ptr<Operation>> operations_;
  absl::Time last_tick_;
  absl::Status status_;
  std::vector<Frame> frames_;
  std::vector<Completion> completions_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_COLLECTIVE_GROUP_PROTOCOL_H_
