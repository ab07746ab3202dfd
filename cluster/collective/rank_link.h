#ifndef PARASOL_CLUSTER_COLLECTIVE_RANK_LINK_H_
#define PARASOL_CLUSTER_COLLECTIVE_RANK_LINK_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/descriptor.h"
#include "cluster/collective/frame_header.h"
#include "cluster/collective/group_protocol.h"

namespace parasol {

// The connection to one other rank: frames to and from a GroupProtocol. Never
// blocks. A piece's bytes are sent from where they lie and received where they
// belong; those that came together with their header are copied. Not
// thread-safe.
class RankLink {
 public:
  // `peer`: the rank at the other end of `socket`.
  RankLink(Descriptor socket, int peer, int64_t epoch);

  int fd() const { return socket_.get(); }
  int peer() const { return peer_; }
  bool wants_to_send() const { return !queue_.empty(); }
  bool is_open() const { return is_open_; }

  void Queue(GroupProtocol::Frame frame);
  // Sends what the socket takes, and tells the protocol of what has left.
  void Send(GroupProtocol& protocol);
  // Receives what is there, kTurnBytes at most, and gives it to the protocol.
  // Returns true if there may be more.
  bool Receive(GroupProtocol& protocol);
  // Lets go of the memory of operations: copies what is left of a piece that is
  // being sent, drops those that are not, and what is being received.
  void ReleaseMemory();
  // Tells the other end that nothing follows what is queued.
  void FinishSending();

 private:
  static constexpr size_t kStagedBytes = 8 << 10;
  static constexpr size_t kTurnBytes = 1 << 20;
  static constexpr size_t kMaxPieces = 64;

  struct Outgoing {
    GroupProtocol::Frame frame;
    std::array<char, FrameHeader::kBytes> header;
    size_t sent = 0;  // bytes of header and payload
    size_t size() const { return header.size() + frame.header.bytes; }
  };

  // The bytes that follow a header, wherever they are.
  static const char* BytesOf(const GroupProtocol::Frame& frame);
  void NoteSent(size_t bytes, GroupProtocol& protocol);
  // Ends the connection, which takes nothing any more, after what it brings.
  void GiveUpSending(const std::string& why, GroupProtocol& protocol);
  // Hands what is staged to the protocol.
  void TakeStaged(GroupProtocol& protocol);
  void TakeHeader(GroupProtocol& protocol);
  // Notes that so many of the awaited bytes are there.
  void Fill(size_t bytes, GroupProtocol& protocol);
  void Break(GroupProtocol& protocol, const std::string& why);

  const Descriptor socket_;
  const int peer_;
  const int64_t epoch_;
  bool is_open_ = true;
  bool finishes_ = false;

  std::deque<Outgoing> queue_;

  // Bytes that were received and not looked at: [begin_, end_).
  std::vector<char> staged_;
  size_t begin_ = 0;
  size_t end_ = 0;
  // The frame whose bytes are awaited: they go to `target_`, or nowhere.
  std::optional<FrameHeader> header_;
  std::byte* target_ = nullptr;
  size_t filled_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_COLLECTIVE_RANK_LINK_H_
