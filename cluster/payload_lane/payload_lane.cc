#include "cluster/payload_lane/payload_lane.h"

#include <endian.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "absl/types/span.h"
#include "base/status_macros.h"
#include "cluster/rpc/protocol_limits.h"

namespace parasol {
namespace {

constexpr int kDropsPerTurn = 64;

}  // namespace

std::shared_ptr<PayloadLane> PayloadLane::Make(LaneSocket socket,
                                               SocketLoop& loop,
                                               Observer& observer,
                                               ReceiveAllowance* allowance) {
  std::shared_ptr<PayloadLane> lane(
      new PayloadLane(std::move(socket), loop, observer, allowance));
  loop.Watch(lane->socket_.descriptor(), *lane);
  return lane;
}

PayloadLane::PayloadLane(LaneSocket socket, SocketLoop& loop,
                         Observer& observer, ReceiveAllowance* allowance)
    : socket_(std::move(socket)),
      loop_(loop),
      observer_(observer),
      reader_({.max_frame_bytes = kMaxMessageBytes,
               .allowance = allowance,
               .target_finder = &observer}) {}

void PayloadLane::Read() {
  reading_ = true;
  // Not from here: the observer may hold a lock.
  loop_.Post([self = shared_from_this()] { self->Receive(); });
}

bool PayloadLane::CompleteRead() {
  absl::StatusOr<std::optional<grpc::ByteBuffer>> frame = reader_.Take();
  if (!frame.ok()) {
    Break(frame.status());
    return true;
  }
  if (!frame->has_value()) return false;
  reading_ = false;
  observer_.OnPayloadRead(absl::OkStatus(), **std::move(frame));
  return true;
}

void PayloadLane::Receive() {
  const std::shared_ptr<PayloadLane> self = shared_from_this();
  while (reading_) {
    if (!is_watched_ || lingers_) {
      absl::Status broken;
      {
        absl::MutexLock lock(&mu_);
        broken = broken_;
      }
      reading_ = false;
      return observer_.OnPayloadRead(broken, {});
    }
    // The next read has its own turn: others of the loop come in between.
    if (CompleteRead()) return;
    if (!readable_) return;
    const absl::Status received = ReceiveSome();
    if (!received.ok()) Break(received);
  }
}

absl::Status PayloadLane::ReceiveSome() {
  ASSIGN_OR_RETURN(const size_t bytes, socket_.Receive(reader_.NextPieces()));
  if (bytes > 0) {
    reader_.Received(bytes);
  } else {
    readable_ = false;
  }
  return absl::OkStatus();
}

// What ends the lane is found again by Receive().
bool PayloadLane::ReceiveAhead() {
  while (reading_ && is_watched_ && !lingers_) {
    const absl::StatusOr<bool> is_whole = reader_.IsWhole();
    if (!is_whole.ok()) return false;
    if (*is_whole) return true;
    if (!readable_ || !ReceiveSome().ok()) return false;
  }
  return false;
}

bool PayloadLane::Write(absl::Span<const grpc::ByteBuffer> messages) {
  {
    absl::MutexLock lock(&mu_);
    if (closed_) return false;
    writing_ = true;
    LayOut(messages);
    if (!Send()) return false;
    if (broken_.ok()) {
      writing_ = false;
      return true;
    }
  }
  loop_.Post([self = shared_from_this()] { self->TellThatSendingFailed(); });
  return false;
}

// What has come is read nevertheless. A handshake that failed while something
// was sent is no event of the socket: the read is told here.
void PayloadLane::TellThatSendingFailed() {
  readable_ = true;
  Receive();
  absl::Status status;
  {
    absl::MutexLock lock(&mu_);
    if (!std::exchange(writing_, false)) return;
    status = broken_;
  }
  observer_.OnPayloadWritten(status);
}

void PayloadLane::LayOut(absl::Span<const grpc::ByteBuffer> messages) {
  pieces_.clear();
  next_piece_ = 0;
  // The pieces point into them: a small slice has its bytes in itself.
  lengths_.resize(messages.size());
  slices_.resize(messages.size());
  for (size_t i = 0; i < messages.size(); ++i) {
    lengths_[i] =
        htole64(FrameLengthWord(static_cast<uint32_t>(messages[i].Length())));
    pieces_.push_back({&lengths_[i], sizeof(lengths_[i])});
    (void)messages[i].Dump(&slices_[i]);
    for (const grpc::Slice& slice : slices_[i]) {
      pieces_.push_back({const_cast<uint8_t*>(slice.begin()), slice.size()});
    }
  }
}

void PayloadLane::LetGo() {
  for (std::vector<grpc::Slice>& slices : slices_) slices.clear();
}

bool PayloadLane::Send() {
  while (broken_.ok() &&
         (next_piece_ < pieces_.size() || socket_.has_unsent())) {
    const absl::StatusOr<size_t> sent =
        socket_.Send(absl::MakeConstSpan(pieces_).subspan(next_piece_));
    if (!sent.ok()) {
      broken_ = sent.status();
      break;
    }
    const bool is_done = next_piece_ == pieces_.size() && !socket_.has_unsent();
    if (*sent == 0 && !is_done) {
      // Room that has come since may have been told before anybody listened.
      if (wants_room_.exchange(true)) return false;
      continue;
    }
    NoteSent(*sent);
  }
  wants_room_ = false;
  LetGo();
  return true;
}

void PayloadLane::NoteSent(size_t bytes) {
  while (next_piece_ < pieces_.size() &&
         bytes >= pieces_[next_piece_].iov_len) {
    bytes -= pieces_[next_piece_++].iov_len;
  }
  if (bytes == 0) return;
  iovec& piece = pieces_[next_piece_];
  piece.iov_base = static_cast<char*>(piece.iov_base) + bytes;
  piece.iov_len -= bytes;
}

void PayloadLane::OnEvents(uint32_t events) {
  const std::shared_ptr<PayloadLane> self = shared_from_this();
  if (lingers_) return Drop();
  if (wants_room_ && (events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) != 0) {
    bool completed;
    absl::Status status;
    {
      absl::MutexLock lock(&mu_);
      const bool has_more =
          next_piece_ < pieces_.size() || socket_.has_unsent();
      completed = writing_ && has_more && Send();
      status = broken_;
      if (completed && status.ok()) writing_ = false;
    }
    if (completed && !status.ok()) {
      TellThatSendingFailed();
    } else if (completed) {
      observer_.OnPayloadWritten(status);
    }
  }
  if ((events & ~EPOLLOUT) != 0) {
    readable_ = true;
    Receive();
  }
}

void PayloadLane::Close() {
  {
    absl::MutexLock lock(&mu_);
    closed_ = true;
  }
  Break(absl::CancelledError("lane: closed"));
}

void PayloadLane::Linger(absl::Duration limit) {
  const std::shared_ptr<PayloadLane> self = shared_from_this();
  {
    absl::MutexLock lock(&mu_);
    closed_ = true;
  }
  if (is_watched_) {
    lingers_ = true;
    shutdown(socket_.descriptor(), SHUT_WR);
  }
  Complete(absl::CancelledError("lane: closed"));
  if (!lingers_) return;
  loop_.PostLater(limit, [self] { self->Disconnect(); });
  Drop();
}

void PayloadLane::Drop() {
  char bytes[16 << 10];
  for (int i = 0; i < kDropsPerTurn; ++i) {
    const ssize_t count =
        recv(socket_.descriptor(), bytes, sizeof(bytes), MSG_DONTWAIT);
    if (count > 0 || (count < 0 && errno == EINTR)) continue;
    if (count == 0 || errno != EAGAIN) Disconnect();
    return;
  }
  loop_.Post([self = shared_from_this()] {
    if (self->lingers_) self->Drop();
  });
}

void PayloadLane::Disconnect() {
  lingers_ = false;
  if (!std::exchange(is_watched_, false)) return;
  loop_.Forget(socket_.descriptor(), *this);
  // The descriptor stays until nobody sends to it.
  shutdown(socket_.descriptor(), SHUT_RDWR);
}

void PayloadLane::Break(const absl::Status& status) {
  const std::shared_ptr<PayloadLane> self = shared_from_this();
  Disconnect();
  Complete(status);
}

// The read first: it says what is wrong, a write only that something is. The
// observer may close the lane when it is told, and be gone afterwards: the
// write is then completed before Close() returns.
void PayloadLane::Complete(const absl::Status& status) {
  absl::Status broken;
  {
    absl::MutexLock lock(&mu_);
    broken_.Update(status);
    broken = broken_;
    LetGo();
  }
  if (std::exchange(reading_, false)) observer_.OnPayloadRead(broken, {});
  bool was_writing;
  {
    absl::MutexLock lock(&mu_);
    was_writing = std::exchange(writing_, false);
  }
  if (was_writing) observer_.OnPayloadWritten(broken);
}

}  // namespace parasol
