#ifndef PARASOL_CLUSTER_COLLECTIVE_RANK_LINK_H_
#define PARASOL_CLUSTER_COLLECTIVE_RANK_LINK_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/descriptor.h"
#include "cluster/collective/frame_header.h"
#include "cluster/collective/group_protocol.h"
#include "cluster/collective/piece_lane.h"

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
  // Returns true if the socket is to say when it takes something.
  bool wants_to_send() const { return !queue_.empty() && !awaits_room_; }
  bool has_queue() const { return !queue_.empty(); }
  bool is_open() const { return is_open_; }

  // Takes pieces from `lane`, which is open, from now on. The peer's own end
  // gives none before SendByLane() there.
  void UseLane(std::unique_ptr<PieceLane> lane) { lane_ = std::move(lane); }
  // Gives the peer pieces by the lane from now on.
  void SendByLane() { sends_by_lane_ = lane_ != nullptr; }

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
    bool in_lane = false;  // the bytes are: nothing follows the header
    size_t sent = 0;       // bytes of header and payload
    size_t size() const { return header.size() + payload_size(); }
    size_t payload_size() const { return in_lane ? 0 : frame.header.bytes; }
  };

  // The bytes that follow a header, wherever they are.
  static const char* BytesOf(const GroupProtocol::Frame& frame);
  // Puts the bytes of a piece that leaves next into the lane, if they travel
  // so. Returns false if there is no room: the peer says when there is.
  bool PutInLane(Outgoing& piece);
  // Takes the bytes of a piece from the lane.
  void TakeFromLane(const FrameHeader& header, GroupProtocol& protocol);
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

  std::unique_ptr<PieceLane> lane_;  // null: none
  bool sends_by_lane_ = false;
  bool awaits_room_ = false;  // the first piece of the queue that has not left

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
