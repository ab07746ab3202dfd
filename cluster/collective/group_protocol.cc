#include "cluster/collective/group_protocol.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/crc32c.h"
#include "base/log.h"

namespace parasol {

GroupProtocol::GroupProtocol(CollectiveGroup group, const Options& options,
                             absl::Time now)
    : group_(std::move(group)),
      options_(options),
      maker_(group_),
      peers_(group_.ranks.size()),
      last_tick_(now) {
  for (Peer& peer : peers_) peer.heard = peer.told = now;
}

void GroupProtocol::Begin(OperationSpec spec, OperationMemory memory,
                          Collective::Done done) {
  if (!status_.ok()) {
    completions_.push_back({std::move(done), status_});
    return;
  }
  CHECK(operations_.size() < Collective::kMaxPending)
      << "more than " << Collective::kMaxPending << " operations are pending";
  const uint64_t sequence = begun_++;
  Operation& operation = *(operations_[sequence] = MakeOperation(
                               spec, std::move(memory), std::move(done)));
  operation.sequence = sequence;
  if (spec.own_bytes > kMaxGatherBytes) {
    return Abort(absl::InvalidArgumentError(absl::StrCat(
        group_.NameOf(group_.own_rank), " gathers ", spec.own_bytes,
        " bytes, may gather ", kMaxGatherBytes, ": gather several times")));
  }
  SendToAll(FrameKind::kBegin, sequence, operation.spec.Encode());
  NoteBegunAhead(operation);
  if (status_.ok()) StartIfKnown(operation);
}

std::unique_ptr<Operation> GroupProtocol::MakeOperation(OperationSpec spec,
                                                        OperationMemory memory,
                                                        Collective::Done done) {
  auto operation = std::make_unique<Operation>();
  spec.chunk_bytes = options_.chunk_bytes;
  if (spec.kind == OperationKind::kAllReduce) {
    spec.algorithm = AlgorithmFor(spec.size);
  }
  operation->memory = std::move(memory);
  if (spec.kind == OperationKind::kAllGather) {
    spec.check = CheckOf(operation->memory.own);
  } else if (spec.kind == OperationKind::kBroadcast &&
             static_cast<int>(spec.source) == group_.own_rank) {
    const absl::Span<const std::byte> bytes = operation->memory.bytes;
    spec.check =
        CheckOf({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  operation->spec = spec;
  operation->done = std::move(done);
  operation->has_begun.resize(peers_.size());
  operation->is_ready.resize(peers_.size());
  operation->sizes.resize(peers_.size());
  operation->sizes[group_.own_rank] = spec.own_bytes;
  operation->checks.resize(peers_.size());
  return operation;
}

ReductionAlgorithm GroupProtocol::AlgorithmFor(uint64_t elements) {
  if (group_.planner != nullptr) return ReductionAlgorithm::kPlanner;
  if (options_.algorithm.has_value()) return *options_.algorithm;
  return maker_.Choose(elements, options_.chunk_bytes);
}

void GroupProtocol::NoteBegunAhead(Operation& operation) {
  for (size_t i = 0; i < peers_.size() && status_.ok(); ++i) {
    const int rank = static_cast<int>(i);
    Peer& peer = peers_[i];
    if (peer.left.has_value() && *peer.left <= operation.sequence) {
      return Abort(RankLostError(group_, rank, "it has left the group"));
    }
    if (peer.begins_ahead.empty()) continue;
    const OperationSpec theirs = peer.begins_ahead.front();
    peer.begins_ahead.pop_front();
    NoteBegun(rank, operation, theirs);
  }
}

Operation* GroupProtocol::Find(uint64_t sequence) {
  const auto it = operations_.find(sequence);
  return it == operations_.end() ? nullptr : it->second.get();
}

void GroupProtocol::NoteBegun(int peer, Operation& operation,
                              const OperationSpec& spec) {
  if (!spec.Agrees(operation.spec)) {
    const absl::Status why = absl::InvalidArgumentError(absl::StrCat(
        "operation ", operation.sequence, " of the group is ",
        operation.spec.ToString(), " at ", group_.NameOf(group_.own_rank),
        " but ", spec.ToString(), " at ", group_.NameOf(peer),
        ": all must do the same in the same order, and end after as many "
        "steps"));
    return Abort(why);
  }
  operation.has_begun[peer] = true;
  ++operation.begun;
  operation.sizes[peer] = spec.own_bytes;
  operation.checks[peer] = spec.check;
  if (spec.kind != OperationKind::kAllGather) SetReady(peer, operation);
}

void GroupProtocol::SetReady(int peer, Operation& operation) {
  operation.is_ready[peer] = true;
  ReleaseEager(peer, operation.sequence);
  Route(operation, std::exchange(operation.withheld, {}));
}

void GroupProtocol::ReleaseEager(int peer, uint64_t sequence) {
  Peer& state = peers_[peer];
  const auto eager = state.eager.find(sequence);
  if (eager == state.eager.end()) return;
  state.eager_bytes -= eager->second;
  state.eager.erase(eager);
}

void GroupProtocol::StartIfKnown(Operation& operation) {
  const bool gathers = operation.spec.kind == OperationKind::kAllGather;
  if (operation.run != nullptr) return;
  if (gathers && operation.begun + 1 < static_cast<int>(peers_.size())) return;
  const uint64_t sequence = operation.sequence;
  const absl::Status planned = maker_.MakeRun(operation);
  if (!planned.ok()) return Abort(planned);
  if (gathers) SendToAll(FrameKind::kReady, sequence, "");
  std::vector<PlanRun::Send> sends;
  operation.run->Begin(sends);
  Route(operation, std::move(sends));
  for (size_t peer = 0; peer < peers_.size() && status_.ok(); ++peer) {
    DeliverEarly(static_cast<int>(peer), operation);
  }
  if (status_.ok()) CompleteIfDone(sequence);
}

void GroupProtocol::DeliverEarly(int peer, Operation& operation) {
  Peer& state = peers_[peer];
  std::deque<EarlyPiece> early = std::exchange(state.early, {});
  for (EarlyPiece& piece : early) {
    if (piece.sequence != operation.sequence || !piece.is_whole) {
      state.early.push_back(std::move(piece));
      continue;
    }
    state.early_bytes -= piece.bytes.size();
    const absl::StatusOr<std::byte*> target =
        operation.run->Target(peer, piece.piece, piece.bytes.size());
    if (!target.ok()) return OnNonsense(peer, target.status());
    std::memcpy(*target, piece.bytes.data(), piece.bytes.size());
    std::vector<PlanRun::Send> sends;
    operation.run->Received(peer, piece.piece, sends);
    Route(operation, std::move(sends));
  }
}

bool GroupProtocol::MayLeave(const Operation& operation,
                             const PlanRun::Send& send) {
  if (operation.is_ready[send.peer]) return true;
  // Pieces to one rank leave in order.
  for (const PlanRun::Send& before : operation.withheld) {
    if (before.peer == send.peer) return false;
  }
  Peer& peer = peers_[send.peer];
  const size_t bytes = send.bytes.size();
  if (bytes > kEagerBytes || peer.eager_bytes + bytes > kMaxEarlyBytes) {
    return false;
  }
  peer.eager_bytes += bytes;
  peer.eager[operation.sequence] += bytes;
  return true;
}

void GroupProtocol::Route(Operation& operation,
                          std::vector<PlanRun::Send> sends) {
  for (const PlanRun::Send& send : sends) {
    if (!MayLeave(operation, send)) {
      operation.withheld.push_back(send);
      continue;
    }
    peers_[send.peer].was_told = true;
    Frame frame;
    frame.peer = send.peer;
    frame.header = {.kind = FrameKind::kPiece,
                    .epoch = group_.epoch,
                    .sequence = operation.sequence,
                    .piece = send.piece,
                    .bytes = send.bytes.size()};
    frame.payload = send.bytes;
    frame.step = send.step;
    frames_.push_back(std::move(frame));
  }
}

std::byte* GroupProtocol::OnHeader(int peer, const FrameHeader& header) {
  if (!status_.ok()) return nullptr;
  Heard(peer);
  if (header.kind == FrameKind::kPiece) return PieceTarget(peer, header);
  std::string& control = peers_[peer].control;
  control.assign(header.bytes, '\0');
  if (header.bytes > 0) return reinterpret_cast<std::byte*>(control.data());
  OnBytes(peer, header);
  return nullptr;
}

std::byte* GroupProtocol::PieceTarget(int peer, const FrameHeader& header) {
  Operation* const operation = Find(header.sequence);
  if (operation == nullptr || operation->run == nullptr) {
    return EarlyTarget(peer, header);
  }
  const absl::StatusOr<std::byte*> target =
      operation->run->Target(peer, header.piece, header.bytes);
  if (target.ok()) return *target;
  OnNonsense(peer, target.status());
  return nullptr;
}

std::byte* GroupProtocol::EarlyTarget(int peer, const FrameHeader& header) {
  Peer& state = peers_[peer];
  const bool may_come =
      (header.sequence >= begun_ || Find(header.sequence) != nullptr) &&
      header.sequence < state.begun && header.bytes > 0 &&
      header.bytes <= kEagerBytes &&
      state.early_bytes + header.bytes <= kMaxEarlyBytes;
  if (!may_come) {
    OnNonsense(peer, absl::InvalidArgumentError(absl::StrCat(
                         "a piece of ", header.bytes, " bytes of operation ",
                         header.sequence, ", which takes none")));
    return nullptr;
  }
  state.early_bytes += header.bytes;
  state.early.push_back(
      {header.sequence, header.piece, std::vector<std::byte>(header.bytes)});
  return state.early.back().bytes.data();
}

void GroupProtocol::OnBytes(int peer, const FrameHeader& header) {
  if (!status_.ok()) return;
  const bool is_piece = header.kind == FrameKind::kPiece;
  if (!is_piece && Crc32cOf(peers_[peer].control) != header.check) {
    return OnNonsense(
        peer, absl::InvalidArgumentError("its bytes have another checksum"));
  }
  switch (header.kind) {
    case FrameKind::kPiece:
      return OnPiece(peer, header);
    case FrameKind::kBegin:
      return OnBegin(peer, header);
    case FrameKind::kReady:
      return OnReady(peer, header.sequence);
    case FrameKind::kAbort:
      return Abort(ParseAbort(peers_[peer].control, peers_.size()));
    case FrameKind::kLeave:
      return OnLeave(peer, header.sequence);
    case FrameKind::kHeartbeat:
    case FrameKind::kLanePiece:  // the link has made it a kPiece
      return;
  }
}

void GroupProtocol::OnPiece(int peer, const FrameHeader& header) {
  Operation* const operation = Find(header.sequence);
  const bool can_take = operation != nullptr && operation->run != nullptr;
  Peer& state = peers_[peer];
  if (!state.early.empty() && !state.early.back().is_whole) {
    // The operation may have been begun since the header came.
    state.early.back().is_whole = true;
    if (can_take) DeliverEarly(peer, *operation);
  } else if (can_take) {
    std::vector<PlanRun::Send> sends;
    operation->run->Received(peer, header.piece, sends);
    Route(*operation, std::move(sends));
  }
  if (status_.ok()) CompleteIfDone(header.sequence);
}

void GroupProtocol::OnBegin(int peer, const FrameHeader& header) {
  Peer& state = peers_[peer];
  absl::StatusOr<OperationSpec> spec = OperationSpec::Parse(state.control);
  if (!spec.ok()) return OnNonsense(peer, spec.status());
  if (header.sequence != state.begun || spec->own_bytes > kMaxGatherBytes ||
      state.begins_ahead.size() == Collective::kMaxPending) {
    return OnNonsense(
        peer, absl::InvalidArgumentError(absl::StrCat(
                  "begins operation ", header.sequence, " after ", state.begun,
                  " others, with ", spec->own_bytes, " bytes")));
  }
  ++state.begun;
  if (header.sequence >= begun_) {
    state.begins_ahead.push_back(*spec);
    return;
  }
  Operation* const operation = Find(header.sequence);
  CHECK(operation != nullptr);  // is not complete before all have begun it
  NoteBegun(peer, *operation, *spec);
  if (!status_.ok()) return;
  StartIfKnown(*operation);
  CompleteIfDone(header.sequence);
}

void GroupProtocol::OnReady(int peer, uint64_t sequence) {
  ReleaseEager(peer, sequence);
  // One that has no more to send may be complete.
  Operation* const operation = Find(sequence);
  if (operation != nullptr) SetReady(peer, *operation);
}

void GroupProtocol::OnLeave(int peer, uint64_t sequence) {
  peers_[peer].left = sequence;
  if (!operations_.empty() && operations_.rbegin()->first >= sequence) {
    Abort(RankLostError(group_, peer, "it has left the group"));
  }
}

void GroupProtocol::Sent(const Frame& frame) {
  if (frame.step < 0 || !status_.ok()) return;
  Operation* const operation = Find(frame.header.sequence);
  CHECK(operation != nullptr);  // waits for this
  std::vector<PlanRun::Send> sends;
  operation->run->Sent(frame.step, sends);
  Route(*operation, std::move(sends));
  CompleteIfDone(frame.header.sequence);
}

void GroupProtocol::CompleteIfDone(uint64_t sequence) {
  Operation* const operation = Find(sequence);
  if (operation == nullptr || operation->run == nullptr ||
      !operation->run->is_complete() ||
      operation->begun + 1 < static_cast<int>(peers_.size())) {
    return;
  }
  if (const auto damaged = operation->FindDamaged(group_.own_rank)) {
    return OnNonsense(*damaged, absl::InvalidArgumentError(absl::StrCat(
                                    "the bytes of operation ", sequence,
                                    " have another checksum")));
  }
  maker_.Recycle(*operation);
  completions_.push_back({std::move(operation->done), absl::OkStatus()});
  operations_.erase(sequence);
}

void GroupProtocol::SendTo(int peer, FrameKind kind, uint64_t sequence,
                           std::string bytes) {
  if (peers_[peer].is_closed) return;
  peers_[peer].was_told = true;
  Frame frame;
  frame.peer = peer;
  frame.header = {.kind = kind,
                  .epoch = group_.epoch,
                  .sequence = sequence,
                  .bytes = bytes.size(),
                  .check = Crc32cOf(bytes)};
  frame.own = std::move(bytes);
  frames_.push_back(std::move(frame));
}

void GroupProtocol::SendToAll(FrameKind kind, uint64_t sequence,
                              const std::string& bytes) {
  for (size_t peer = 0; peer < peers_.size(); ++peer) {
    if (static_cast<int>(peer) == group_.own_rank) continue;
    SendTo(static_cast<int>(peer), kind, sequence, bytes);
  }
}

void GroupProtocol::OnClosed(int peer, const std::string& why) {
  peers_[peer].is_closed = true;
  if (peers_[peer].left.has_value()) return;
  Abort(RankLostError(group_, peer, why));
}

// A loss like any other: a connection that brings damaged bytes is of no more
// use than one that brings none, and another one may be.
void GroupProtocol::OnNonsense(int peer, const absl::Status& why) {
  Abort(RankLostError(
      group_, peer,
      absl::StrCat("it has sent what is no message of the group (",
                   why.message(), ")")));
}

void GroupProtocol::Tick(absl::Time now) {
  if (!status_.ok()) return;
  CheckSilence(now);
  if (!status_.ok()) return;
  for (size_t i = 0; i < peers_.size(); ++i) {
    Peer& peer = peers_[i];
    if (std::exchange(peer.was_told, false)) peer.told = now;
    if (now - peer.told < options_.heartbeat) continue;
    if (static_cast<int>(i) == group_.own_rank) continue;
    SendTo(static_cast<int>(i), FrameKind::kHeartbeat, 0);
  }
}

void GroupProtocol::CheckSilence(absl::Time now) {
  // A process that has itself stood still has heard nobody.
  const bool was_still = now - last_tick_ > options_.silence / 2;
  last_tick_ = now;
  for (size_t i = 0; i < peers_.size(); ++i) {
    Peer& peer = peers_[i];
    const int rank = static_cast<int>(i);
    if (std::exchange(peer.was_heard, false) || was_still) peer.heard = now;
    if (rank == group_.own_rank || peer.left.has_value()) continue;
    if (now - peer.heard > options_.silence) {
      return Abort(RankLostError(
          group_, rank,
          absl::StrCat("silent for ", absl::FormatDuration(options_.silence))));
    }
  }
}

std::vector<int> GroupProtocol::Awaited() const {
  std::vector<int> awaited;
  if (operations_.empty()) return awaited;
  const Operation& oldest = *operations_.begin()->second;
  for (size_t rank = 0; rank < peers_.size(); ++rank) {
    const bool is_own = static_cast<int>(rank) == group_.own_rank;
    if (!is_own && !oldest.has_begun[rank]) {
      awaited.push_back(static_cast<int>(rank));
    }
  }
  return awaited;
}

void GroupProtocol::Abort(const absl::Status& why) {
  if (!status_.ok()) return;
  End(why);
  SendToAll(FrameKind::kAbort, 0, EncodeAbort(why));
}

void GroupProtocol::Leave(const absl::Status& why) {
  if (!status_.ok()) return;
  const uint64_t first =
      operations_.empty() ? begun_ : operations_.begin()->first;
  End(why);
  SendToAll(FrameKind::kLeave, first, "");
}

void GroupProtocol::End(const absl::Status& why) {
  CHECK(!why.ok());
  status_ = why;
  // Pieces that have not left stay here. What else was said stays said.
  frames_.erase(std::remove_if(frames_.begin(), frames_.end(),
                               [](const Frame& f) { return f.step >= 0; }),
                frames_.end());
  for (auto& [sequence, operation] : operations_) {
    completions_.push_back({std::move(operation->done), why});
  }
}

void GroupProtocol::ReleaseOperations() {
  CHECK(!status_.ok());
  operations_.clear();
}

std::vector<GroupProtocol::Frame> GroupProtocol::TakeFrames() {
  return std::exchange(frames_, {});
}

std::vector<GroupProtocol::Completion> GroupProtocol::TakeCompletions() {
  return std::exchange(completions_, {});
}

}  // namespace parasol
