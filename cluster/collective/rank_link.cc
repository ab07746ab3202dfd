#include "cluster/collective/rank_link.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/status/statusor.h"

namespace parasol {

RankLink::RankLink(Descriptor socket, int peer, int64_t epoch)
    : socket_(std::move(socket)),
      peer_(peer),
      epoch_(epoch),
      staged_(kStagedBytes) {}

void RankLink::Queue(GroupProtocol::Frame frame) {
  if (!is_open_) return;
  Outgoing outgoing;
  outgoing.header = frame.header.Encode();
  outgoing.frame = std::move(frame);
  queue_.push_back(std::move(outgoing));
}

const char* RankLink::BytesOf(const GroupProtocol::Frame& frame) {
  return frame.payload.empty()
             ? frame.own.data()
             : reinterpret_cast<const char*>(frame.payload.data());
}

void RankLink::Send(GroupProtocol& protocol) {
  while (is_open_ && !queue_.empty()) {
    std::array<iovec, 2 * kMaxPieces> pieces;
    size_t count = 0;
    size_t total = 0;
    awaits_room_ = false;
    for (Outgoing& each : queue_) {
      if (count + 2 > pieces.size()) break;
      if (!PutInLane(each)) {
        awaits_room_ = true;
        break;
      }
      const size_t in_header = std::min(each.sent, FrameHeader::kBytes);
      const size_t in_bytes = each.sent - in_header;
      if (in_header < FrameHeader::kBytes) {
        pieces[count++] = {const_cast<char*>(each.header.data()) + in_header,
                           FrameHeader::kBytes - in_header};
      }
      if (in_bytes < each.payload_size()) {
        pieces[count++] = {const_cast<char*>(BytesOf(each.frame)) + in_bytes,
                           each.payload_size() - in_bytes};
      }
      total += each.size() - each.sent;
      // The peer takes it while the next one is put.
      if (each.in_lane) break;
    }
    if (count == 0) return;
    msghdr message = {};
    message.msg_iov = pieces.data();
    message.msg_iovlen = count;
    const ssize_t sent =
        sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return;
    if (sent < 0) return GiveUpSending(std::strerror(errno), protocol);
    NoteSent(sent, protocol);
    if (static_cast<size_t>(sent) < total) return;
  }
  if (is_open_ && finishes_) shutdown(socket_.get(), SHUT_WR);
}

bool RankLink::PutInLane(Outgoing& piece) {
  const FrameHeader& header = piece.frame.header;
  if (!sends_by_lane_ || header.kind != FrameKind::kPiece || piece.in_lane ||
      piece.sent > 0 || !PieceLane::Suits(header.bytes)) {
    return true;
  }
  if (!lane_->Put({reinterpret_cast<const std::byte*>(BytesOf(piece.frame)),
                   header.bytes})) {
    return false;
  }
  piece.in_lane = true;
  FrameHeader in_lane = header;
  in_lane.kind = FrameKind::kLanePiece;
  piece.header = in_lane.Encode();
  return true;
}

void RankLink::GiveUpSending(const std::string& why, GroupProtocol& protocol) {
  // What the peer has said before it closed counts, above all why it ended the
  // group.
  while (is_open_ && Receive(protocol)) {
  }
  if (is_open_) Break(protocol, why);
}

void RankLink::NoteSent(size_t bytes, GroupProtocol& protocol) {
  while (!queue_.empty()) {
    Outgoing& first = queue_.front();
    const size_t left = first.size() - first.sent;
    if (left > bytes) {
      first.sent += bytes;
      return;
    }
    bytes -= left;
    const GroupProtocol::Frame frame = std::move(first.frame);
    queue_.pop_front();
    protocol.Sent(frame);
  }
}

bool RankLink::Receive(GroupProtocol& protocol) {
  size_t turn = 0;
  while (is_open_ && turn < kTurnBytes) {
    std::array<iovec, 2> pieces;
    size_t count = 0;
    const size_t direct = header_.has_value() && target_ != nullptr
                              ? header_->bytes - filled_
                              : 0;
    if (direct > 0) pieces[count++] = {target_ + filled_, direct};
    // All that was staged has been looked at, but for a part of a header.
    std::memmove(staged_.data(), staged_.data() + begin_, end_ - begin_);
    end_ -= std::exchange(begin_, 0);
    const size_t room = staged_.size() - end_;
    pieces[count++] = {staged_.data() + end_, room};
    msghdr message = {};
    message.msg_iov = pieces.data();
    message.msg_iovlen = count;
    const ssize_t received = recvmsg(socket_.get(), &message, MSG_DONTWAIT);
    if (received < 0 && errno == EINTR) continue;
    if (received < 0 && errno == EAGAIN) return false;
    if (received <= 0) {
      Break(protocol,
            received == 0 ? "the connection was closed" : std::strerror(errno));
      return false;
    }
    protocol.Heard(peer_);
    const size_t bytes = received;
    turn += bytes;
    end_ += bytes - std::min(bytes, direct);
    if (direct > 0) Fill(std::min(bytes, direct), protocol);
    TakeStaged(protocol);
    // What fills less than there was room for was all.
    if (bytes < direct + room) return false;
  }
  return is_open_;
}

void RankLink::TakeStaged(GroupProtocol& protocol) {
  while (is_open_ && begin_ < end_) {
    if (!header_.has_value()) {
      if (end_ - begin_ < FrameHeader::kBytes) return;
      TakeHeader(protocol);
      continue;
    }
    const size_t bytes =
        std::min<size_t>(header_->bytes - filled_, end_ - begin_);
    if (target_ != nullptr) {
      std::memcpy(target_ + filled_, staged_.data() + begin_, bytes);
    }
    begin_ += bytes;
    Fill(bytes, protocol);
  }
}

void RankLink::TakeHeader(GroupProtocol& protocol) {
  const absl::StatusOr<FrameHeader> header =
      FrameHeader::Parse(staged_.data() + begin_, epoch_);
  begin_ += FrameHeader::kBytes;
  if (!header.ok()) {
    protocol.OnNonsense(peer_, header.status());
    return Break(protocol, "nonsense");
  }
  if (header->kind == FrameKind::kLanePiece) {
    return TakeFromLane(*header, protocol);
  }
  target_ = protocol.OnHeader(peer_, *header);
  filled_ = 0;
  if (header->bytes > 0) header_ = *header;
}

void RankLink::TakeFromLane(const FrameHeader& header,
                            GroupProtocol& protocol) {
  FrameHeader piece = header;
  piece.kind = FrameKind::kPiece;
  std::byte* const to = protocol.OnHeader(peer_, piece);
  if (lane_ == nullptr || !lane_->Take(piece.bytes, to)) {
    protocol.OnNonsense(
        peer_, absl::InvalidArgumentError("a piece that is not in the lane"));
    return Break(protocol, "nonsense");
  }
  if (lane_->TellsOfRoom()) {
    Queue({.peer = peer_,
           .header = {.kind = FrameKind::kHeartbeat, .epoch = epoch_},
           .own = ""});
  }
  if (to != nullptr) protocol.OnBytes(peer_, piece);
}

void RankLink::Fill(size_t bytes, GroupProtocol& protocol) {
  filled_ += bytes;
  if (filled_ < header_->bytes) return;
  const FrameHeader header = *header_;
  header_.reset();
  if (std::exchange(target_, nullptr) != nullptr) {
    protocol.OnBytes(peer_, header);
  }
}

void RankLink::ReleaseMemory() {
  target_ = nullptr;
  for (Outgoing& each : queue_) {
    if (each.frame.step < 0 || each.sent == 0) continue;
    if (!each.in_lane) {
      each.frame.own.assign(BytesOf(each.frame), each.frame.header.bytes);
    }
    each.frame.payload = {};
    each.frame.step = -1;
  }
  std::erase_if(queue_,
                [](const Outgoing& each) { return each.frame.step >= 0; });
  awaits_room_ = false;
}

void RankLink::FinishSending() {
  finishes_ = true;
  if (queue_.empty() && is_open_) shutdown(socket_.get(), SHUT_WR);
}

void RankLink::Break(GroupProtocol& protocol, const std::string& why) {
  is_open_ = false;
  queue_.clear();
  shutdown(socket_.get(), SHUT_RDWR);
  protocol.OnClosed(peer_, why);
}

}  // namespace parasol
