// A rank among others whose every byte the test says: what a group that ends in
// the midst of messages does with the memory of its operations.

#include "cluster/collective/socket_collective.h"

#include <malloc.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iterator>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/crc32c.h"
#include "base/descriptor.h"
#include "base/log.h"
#include "base/status_matchers.h"
#include "cluster/collective/frame_header.h"
#include "cluster/collective/operation_spec.h"
#include "cluster/collective/testing/contributions.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

constexpr int64_t kEpoch = 7;
// What a rank's socket holds, about: less than a piece of these tests.
constexpr int kSocketBytes = 16 << 10;

// Another rank's end of a connection.
class RawPeer {
 public:
  explicit RawPeer(Descriptor socket) : socket_(std::move(socket)) {}

  void Send(absl::string_view bytes) {
    CHECK_EQ(send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
             static_cast<ssize_t>(bytes.size()));
  }
  // Makes the rank's next send fail, while it receives as before.
  void RefuseToReceive() { CHECK_EQ(shutdown(socket_.get(), SHUT_RD), 0); }

  FrameHeader ReceiveHeader() {
    const std::string bytes = Receive(FrameHeader::kBytes);
    const auto header = FrameHeader::Parse(bytes.data(), kEpoch);
    CHECK(header.ok()) << header.status();
    return *header;
  }
  std::string Receive(size_t count) {
    std::string bytes(count, '\0');
    CHECK_EQ(recv(socket_.get(), bytes.data(), count, MSG_WAITALL),
             static_cast<ssize_t>(count));
    return bytes;
  }
  // Drops what comes before an abort, and returns its status.
  absl::Status ReceiveAbort(size_t ranks) {
    while (true) {
      const FrameHeader header = ReceiveHeader();
      const std::string bytes = Receive(header.bytes);
      if (header.kind == FrameKind::kAbort) return ParseAbort(bytes, ranks);
    }
  }
  // Says that nothing follows, and waits until the rank has received all.
  void AwaitReceived() {
    CHECK_EQ(shutdown(socket_.get(), SHUT_WR), 0);
    char dropped[1024];
    while (recv(socket_.get(), dropped, sizeof(dropped), 0) > 0) {
    }
  }

 private:
  const Descriptor socket_;
};

std::string Message(FrameHeader header, absl::string_view bytes) {
  header.epoch = kEpoch;
  header.bytes = bytes.size();
  if (header.kind != FrameKind::kPiece) header.check = Crc32cOf(bytes);
  const auto encoded = header.Encode();
  return absl::StrCat(absl::string_view(encoded.data(), encoded.size()), bytes);
}

// Rank 0 of a group, with a RawPeer for each other rank.
class SocketCollectiveTest : public testing::Test {
 protected:
  // Memory that was freed leaves the process: touching it ends the test. Under
  // a sanitizer, which sees that itself, this does nothing.
  SocketCollectiveTest() { mallopt(M_MMAP_THRESHOLD, 64 << 10); }

  void Join(const Layout& layout, ReductionAlgorithm algorithm) {
    layout_ = layout;
    CollectiveGroup group;
    group.epoch = kEpoch;
    std::map<int, Descriptor> connected;
    for (int rank = 0; rank < static_cast<int>(layout.size()); ++rank) {
      group.ranks.push_back({"host:1", layout[rank]});
      if (rank == 0) continue;
      int ends[2];
      CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
      CHECK_EQ(setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &kSocketBytes,
                          sizeof(kSocketBytes)),
               0);
      connected.emplace(rank, Descriptor(ends[0]));
      peers_.emplace(rank, Descriptor(ends[1]));
    }
    options_.protocol.algorithm = algorithm;
    // A busy machine is no lost rank, and nothing is sent but what is tested.
    options_.protocol.heartbeat = absl::Seconds(60);
    options_.protocol.silence = absl::Seconds(60);
    collective_ = std::make_unique<SocketCollective>(
        group, std::move(connected), options_, Clock::Real());
  }

  RawPeer& peer(int rank) { return peers_.at(rank); }

  // Begins the sum of `count` elements of each of the rank's replicas.
  void BeginSum(size_t count, Collective::Done done) {
    std::vector<Contribution> contributions;
    for (const int replica : layout_[0]) {
      values_.push_back(ContributionOf(replica, 0, count));
      contributions.push_back({replica, values_.back()});
    }
    sums_.emplace_back(count, 0);
    collective_->AllReduce(contributions, absl::MakeSpan(sums_.back()),
                           std::move(done));
  }

  // Returns the message with which a rank begins such a sum.
  std::string BeginMessage(uint64_t sequence, size_t count) const {
    OperationSpec spec;
    spec.size = count;
    spec.algorithm = *options_.protocol.algorithm;
    spec.chunk_bytes = options_.protocol.chunk_bytes;
    return Message({.kind = FrameKind::kBegin, .sequence = sequence},
                   spec.Encode());
  }

  SocketCollective::Options options_;
  Layout layout_;
  std::map<int, RawPeer> peers_;
  std::list<std::vector<float>> values_, sums_;
  std::unique_ptr<SocketCollective> collective_;
};

// Rank 0 sums a pack with two others. One of them is in the midst of a piece
// when a send to the other fails, and goes on with it when the group has ended.
class FailedSendTest : public SocketCollectiveTest {
 protected:
  // A slice is a piece, which waits for its receiver.
  static constexpr size_t kCount = 3 * (GroupProtocol::kEagerBytes / 2);
  static constexpr size_t kPieceBytes = kCount / 3 * sizeof(float);
  static constexpr size_t kPartBytes = 1000;

  // Numbers of pieces in `owner_plan.cc`: of contributions, which are received
  // to memory of the operation, and of sums.
  static constexpr uint64_t kContribution = 0;
  static constexpr uint64_t kSums = uint64_t{1} << 32;

  // Calls `then` on the thread that works, when a part of `sender`'s piece has
  // been received.
  void BeginPiece(int sender, uint64_t piece, std::function<void()> then) {
    options_.protocol.chunk_bytes = 2 * kPieceBytes;
    Join({{0}, {1}, {2}}, ReductionAlgorithm::kOwnerSlices);
    BeginSum(0, [then](const absl::Status& status) {
      EXPECT_OK(status);
      then();
    });
    BeginSum(kCount, [this](const absl::Status& status) {
      status_ = status;
      std::fill(pack().begin(), pack().end(), -1);
      ended_.Notify();
    });
    const std::string begins = BeginMessage(0, 0) + BeginMessage(1, kCount);
    peer(3 - sender).Send(begins);
    const FrameHeader header = {
        .kind = FrameKind::kPiece, .sequence = 1, .piece = piece};
    const std::string whole = Message(header, std::string(kPieceBytes, 'x'));
    // One message of the socket: who has its beginning has all of it.
    peer(sender).Send(begins +
                      whole.substr(0, FrameHeader::kBytes + kPartBytes));
  }

  // Returns the memory of the sums.
  std::vector<float>& pack() { return *std::next(sums_.begin()); }

  // Sends as much again, which is not all.
  void SendMore(int sender) { peer(sender).Send(std::string(kPartBytes, 'x')); }

  // Expects that all have heard of the loss and nobody has what was sent then.
  void ExpectLost(int lost, int sender) {
    ended_.WaitForNotification();
    EXPECT_THAT(status_, StatusIs(absl::StatusCode::kUnavailable));
    EXPECT_EQ(LostRank(status_), lost);
    EXPECT_EQ(LostRank(peer(sender).ReceiveAbort(3)), lost);
    peer(sender).AwaitReceived();
    EXPECT_THAT(pack(), Each(-1.f));
  }

  absl::Status status_;
  absl::Notification ended_;
};

TEST_F(FailedSendTest, InBeginLeavesTheCallersSumsAlone) {
  BeginPiece(1, kSums, [this] {
    peer(2).RefuseToReceive();
    BeginSum(0, [](const absl::Status&) {});
    SendMore(1);
  });
  ExpectLost(2, 1);
}

TEST_F(FailedSendTest, InBeginLeavesFreedMemoryAlone) {
  BeginPiece(1, kContribution, [this] {
    peer(2).RefuseToReceive();
    BeginSum(0, [](const absl::Status&) {});
    SendMore(1);
  });
  ExpectLost(2, 1);
}

TEST_F(FailedSendTest, BeforeTheNextReceiveLeavesFreedMemoryAlone) {
  // Most of a contribution to the lost rank waits to be sent.
  BeginPiece(2, kContribution, [this] {
    peer(1).RefuseToReceive();
    SendMore(2);
  });
  ExpectLost(1, 2);
}

TEST_F(SocketCollectiveTest, APieceThatAnAbortCutsShortIsSentAsItWas) {
  constexpr size_t kCount = 1 << 16;
  constexpr size_t kBytes = kCount * sizeof(float);
  options_.protocol.chunk_bytes = kBytes;
  // A rank with two runs of the chain adds the first in the operation's memory.
  Join({{0, 2}, {1}}, ReductionAlgorithm::kChain);
  BeginSum(kCount, [](const absl::Status&) {});
  peer(1).Send(BeginMessage(0, kCount));
  peer(1).Receive(peer(1).ReceiveHeader().bytes);
  const FrameHeader piece = peer(1).ReceiveHeader();
  ASSERT_EQ(piece.kind, FrameKind::kPiece);
  ASSERT_EQ(piece.bytes, kBytes);
  collective_->Abort(absl::DataLossError("not a number"));
  const std::string bytes = peer(1).Receive(kBytes);
  // Compared whole: a failure prints no megabytes.
  EXPECT_TRUE(std::memcmp(bytes.data(), values_.front().data(), kBytes) == 0);
  EXPECT_THAT(peer(1).ReceiveAbort(2),
              StatusIs(absl::StatusCode::kDataLoss, "not a number"));
}

TEST_F(SocketCollectiveTest, APieceThatIsInNoLaneEndsTheGroup) {
  constexpr size_t kCount = 1 << 14;
  Join({{0}, {1}}, ReductionAlgorithm::kOneRound);
  absl::Status status;
  absl::Notification ended;
  BeginSum(kCount, [&](const absl::Status& why) {
    status = why;
    ended.Notify();
  });
  peer(1).Send(BeginMessage(0, kCount));
  FrameHeader header = {.kind = FrameKind::kLanePiece, .epoch = kEpoch};
  header.bytes = kCount * sizeof(float);
  const auto encoded = header.Encode();
  peer(1).Send(absl::string_view(encoded.data(), encoded.size()));
  ended.WaitForNotification();
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("rank 1 (host:1) was lost: it has sent what "
                                 "is no message of the group (a piece that is "
                                 "not in the lane)")));
}

// A connection that ends within a message, after each of its bytes, and one
// with a flipped bit in each byte of its header.
TEST_F(SocketCollectiveTest, ADamagedOrCutMessageIsALoss) {
  const size_t header_bytes = FrameHeader::kBytes;
  for (size_t byte = 0; byte < header_bytes + OperationSpec::kBytes; ++byte) {
    for (const bool is_cut : {false, true}) {
      SCOPED_TRACE(absl::StrCat(is_cut ? "cut" : "flipped", " at ", byte));
      peers_.clear();
      Join({{0}, {1}}, ReductionAlgorithm::kOneRound);
      absl::Status status;
      absl::Notification ended;
      BeginSum(100, [&](const absl::Status& why) {
        status = why;
        ended.Notify();
      });
      std::string message = BeginMessage(0, 100);
      if (is_cut) message.resize(byte);
      if (!is_cut) message[byte] ^= static_cast<char>(1 << byte % 8);
      peer(1).Send(message);
      if (is_cut) peers_.clear();
      ended.WaitForNotification();
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable,
                                   HasSubstr("rank 1 (host:1)")));
      EXPECT_EQ(LostRank(status), 1);
      peers_.clear();
      collective_.reset();
    }
  }
}

TEST_F(SocketCollectiveTest, AnAbortThatHasComeIsTheReasonIfASendFails) {
  Join({{0}, {1}}, ReductionAlgorithm::kOneRound);
  absl::Status status;
  absl::Notification ended;
  BeginSum(0, [&](const absl::Status& first) {
    EXPECT_OK(first);
    peer(1).Send(Message({.kind = FrameKind::kAbort},
                         EncodeAbort(absl::DataLossError("not a number"))));
    peer(1).RefuseToReceive();
    BeginSum(1000, [&](const absl::Status& why) {
      status = why;
      ended.Notify();
    });
  });
  peer(1).Send(BeginMessage(0, 0));
  ended.WaitForNotification();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDataLoss, "not a number"));
}

}  // namespace
}  // namespace parasol
