#include "tests/fuzz/readers/rank_targets.h"

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/descriptor.h"
#include "base/log.h"
#include "cluster/collective/collective_group.h"
#include "cluster/collective/frame_header.h"
#include "cluster/collective/group_protocol.h"
#include "cluster/collective/operation_spec.h"
#include "cluster/collective/rank_hello.h"
#include "cluster/collective/rank_link.h"
#include "cluster/payload_lane/payload_offer.h"
#include "tests/fuzz/readers/input_bytes.h"

namespace parasol {
namespace {

constexpr int kRanks = 3;
constexpr int64_t kEpoch = 7;
constexpr size_t kMaxOperations = 16;
constexpr absl::Duration kTick = absl::Milliseconds(100);

// What an input's bytes say, one after the other.
enum Action : uint8_t {
  kSendBytes,       // rank, bytes
  kSendMessage,     // rank, kind, sequence, piece, bytes
  kBeginSum,        // elements
  kBeginGather,     // bytes
  kBeginBroadcast,  // source, bytes
  kLetTimePass,     // ticks
  kActions,
};

CollectiveGroup Group() {
  CollectiveGroup group;
  group.epoch = kEpoch;
  for (int rank = 0; rank < kRanks; ++rank) {
    group.ranks.push_back({absl::StrCat("host", rank, ":1"), {rank}});
  }
  return group;
}

// Rank 0, and the other ends of its connections.
class Rank {
 public:
  Rank() : protocol_(Group(), {.chunk_bytes = 256}, now_) {
    for (int peer = 1; peer < kRanks; ++peer) {
      std::array<int, 2> ends;
      CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
                          0, ends.data()),
               0);
      links_.push_back(
          std::make_unique<RankLink>(Descriptor(ends[0]), peer, kEpoch));
      others_.emplace_back(ends[1]);
    }
  }

  void Send(int peer, absl::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = send(others_[peer - 1].get(), bytes.data(),
                                bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent < 0) break;
      bytes.remove_prefix(sent);
      Work();
    }
    Work();
  }

  void BeginSum(size_t elements) {
    Call* const call = NewCall();
    if (call == nullptr) return;
    call->values.assign(elements, 1.f);
    call->sum.assign(elements, 0.f);
    OperationSpec spec;
    spec.kind = OperationKind::kAllReduce;
    spec.size = elements;
    Begin(*call, spec,
          {.contributions = {{.replica = 0, .values = call->values}},
           .sum = absl::MakeSpan(call->sum)});
  }

  void BeginGather(absl::string_view own) {
    Call* const call = NewCall();
    if (call == nullptr) return;
    OperationSpec spec;
    spec.kind = OperationKind::kAllGather;
    spec.own_bytes = own.size();
    Begin(*call, spec, {.own = std::string(own), .gathered = &call->gathered});
  }

  void BeginBroadcast(int source, size_t bytes) {
    Call* const call = NewCall();
    if (call == nullptr) return;
    call->bytes.resize(bytes);
    OperationMemory memory = {.bytes = absl::MakeSpan(call->bytes)};
    for (int rank = 0; rank < kRanks; ++rank) {
      if (rank != source) memory.receivers.push_back(rank);
    }
    OperationSpec spec;
    spec.kind = OperationKind::kBroadcast;
    spec.source = source;
    spec.receivers = FingerprintOf(memory.receivers);
    spec.size = bytes;
    Begin(*call, spec, std::move(memory));
  }

  void LetTimePass(int ticks) {
    for (int tick = 0; tick < ticks; ++tick) {
      now_ += kTick;
      protocol_.Tick(now_);
      Work();
    }
  }

  // Ends the group, and checks that each operation has ended once.
  void End() {
    protocol_.Leave(absl::CancelledError("the end"));
    Work();
    for (const Call& call : calls_) CHECK_EQ(call.ends, 1);
  }

 private:
  struct Call {
    std::vector<float> values, sum;
    std::vector<std::string> gathered;
    std::vector<std::byte> bytes;
    int ends = 0;
  };

  Call* NewCall() {
    if (calls_.size() == kMaxOperations) return nullptr;
    return &calls_.emplace_back();
  }

  void Begin(Call& call, const OperationSpec& spec, OperationMemory memory) {
    protocol_.Begin(spec, std::move(memory),
                    [&call](const absl::Status&) { ++call.ends; });
    Work();
  }

  // Receives and sends as long as there is something to do, as an endpoint's
  // thread does.
  void Work() {
    for (const auto& link : links_) {
      while (link->is_open() && link->Receive(protocol_)) {
      }
    }
    for (GroupProtocol::Frame& frame : protocol_.TakeFrames()) {
      links_[frame.peer - 1]->Queue(std::move(frame));
    }
    for (size_t i = 0; i < links_.size(); ++i) {
      if (!protocol_.status().ok()) links_[i]->ReleaseMemory();
      links_[i]->Send(protocol_);
      std::array<char, 4096> dropped;
      while (recv(others_[i].get(), dropped.data(), dropped.size(),
                  MSG_DONTWAIT) > 0) {
      }
    }
    if (!protocol_.status().ok()) protocol_.ReleaseOperations();
    for (const GroupProtocol::Completion& completion :
         protocol_.TakeCompletions()) {
      completion.done(completion.status);
    }
  }

  absl::Time now_ = absl::FromUnixSeconds(1000);
  std::deque<Call> calls_;
  GroupProtocol protocol_;
  std::vector<std::unique_ptr<RankLink>> links_;
  std::vector<Descriptor> others_;
};

std::string MessageOf(InputBytes& input) {
  FrameHeader header;
  header.kind = static_cast<FrameKind>(input.Byte() % 9);
  header.epoch = kEpoch;
  header.sequence = input.Byte();
  header.piece = input.Byte();
  const absl::string_view bytes = input.Counted();
  header.bytes = bytes.size();
  const auto encoded = header.Encode();
  return absl::StrCat(absl::string_view(encoded.data(), encoded.size()), bytes);
}

std::string Message(int peer, FrameKind kind, int sequence,
                    absl::string_view bytes) {
  return absl::StrCat(
      std::string{static_cast<char>(kSendMessage), static_cast<char>(peer - 1),
                  static_cast<char>(kind), static_cast<char>(sequence), '\0'},
      InputBytes::OfCounted(bytes));
}

// Both others begin the operation, and are ready for it.
std::string BegunByAll(int sequence, const OperationSpec& spec) {
  std::string input;
  for (int peer = 1; peer < kRanks; ++peer) {
    absl::StrAppend(&input,
                    Message(peer, FrameKind::kBegin, sequence, spec.Encode()),
                    Message(peer, FrameKind::kReady, sequence, ""));
  }
  return input;
}

void FeedRank(absl::string_view bytes) {
  InputBytes input(bytes);
  Rank rank;
  while (!input.empty()) {
    switch (input.Byte() % kActions) {
      case kSendBytes: {
        const int peer = 1 + input.Byte() % (kRanks - 1);
        rank.Send(peer, input.Counted());
        break;
      }
      case kSendMessage: {
        const int peer = 1 + input.Byte() % (kRanks - 1);
        rank.Send(peer, MessageOf(input));
        break;
      }
      case kBeginSum:
        rank.BeginSum(input.Short());
        break;
      case kBeginGather:
        rank.BeginGather(input.Counted());
        break;
      case kBeginBroadcast: {
        const int source = input.Byte() % kRanks;
        rank.BeginBroadcast(source, input.Short());
        break;
      }
      default:
        rank.LetTimePass(input.Byte() % 32);
    }
  }
  rank.End();
}

std::vector<std::string> RankSeeds() {
  OperationSpec sum;
  sum.kind = OperationKind::kAllReduce;
  sum.size = 300;
  sum.chunk_bytes = 256;
  OperationSpec gather;
  gather.kind = OperationKind::kAllGather;
  gather.own_bytes = 3;
  gather.chunk_bytes = 256;
  OperationSpec broadcast;
  broadcast.kind = OperationKind::kBroadcast;
  broadcast.source = 1;
  broadcast.receivers = FingerprintOf({0, 2});
  broadcast.size = 4;
  broadcast.chunk_bytes = 256;
  const auto action = [](Action action) {
    return std::string(1, static_cast<char>(action));
  };
  return {
      absl::StrCat(action(kBeginSum), InputBytes::OfShort(300),
                   BegunByAll(0, sum),
                   Message(1, FrameKind::kPiece, 0, std::string(256, '\1'))),
      absl::StrCat(
          action(kBeginGather), InputBytes::OfCounted("own"),
          BegunByAll(0, gather), Message(1, FrameKind::kPiece, 0, "abc"),
          Message(2, FrameKind::kPiece, 0, "def"), action(kLetTimePass), "\5"),
      absl::StrCat(BegunByAll(0, broadcast),
                   Message(1, FrameKind::kPiece, 0, "abcd"),
                   action(kBeginBroadcast), "\1", InputBytes::OfShort(4)),
      absl::StrCat(action(kBeginSum), InputBytes::OfShort(9),
                   Message(1, FrameKind::kAbort, 0,
                           EncodeAbort(absl::UnavailableError("gone"))),
                   Message(2, FrameKind::kLeave, 0, ""),
                   Message(2, FrameKind::kHeartbeat, 0, ""))};
}

CollectiveGroup SomeGroup(int own_rank) {
  CollectiveGroup group;
  group.epoch = 7;
  group.secret = "secret";
  group.ranks = {{"host0:1", {0}}, {"host1:2", {1}}};
  group.own_rank = own_rank;
  return group;
}

// The first bytes of a connection to a rank, and a ps's offer of a lane.
void FeedHello(absl::string_view input) {
  const std::optional<RankHello> hello = RankHello::Parse(input);
  CHECK(!hello.has_value() || !RankHello::IsOther(input));
  CHECK(!hello.has_value() || !RankHello::IsOfOtherVersion(input));
  if (hello.has_value() &&
      AnswerTo(*hello, SomeGroup(0)) == HelloAnswer::kChallenge) {
    RankHello right = RankHello::Of(SomeGroup(1), 0);
    right.nonce = hello->nonce;
    CHECK_EQ(hello->Encode(), right.Encode());
  }
  if (const auto offer = PayloadOffer::Parse(input); offer.ok()) {
    CHECK(PayloadOffer::Parse(offer->ToString()).ok());
  }
}

std::vector<std::string> HelloSeeds() {
  return {RankHello::Of(SomeGroup(1), 0).Encode(),
          PayloadOffer::Draw(45123).ToString()};
}

}  // namespace

std::vector<FuzzTarget> RankTargets() {
  return {{"rank", FeedRank, RankSeeds}, {"hello", FeedHello, HelloSeeds}};
}

}  // namespace parasol
