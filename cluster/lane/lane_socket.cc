#include "cluster/lane/lane_socket.h"

#include <endian.h>
#include <limits.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cluster/rpc/protocol_limits.h"

namespace parasol {
namespace {

absl::Status SystemError(const char* what) {
  return absl::UnavailableError(
      absl::StrCat("lane: ", what, ": ", std::strerror(errno)));
}

}  // namespace

std::shared_ptr<LaneSocket> LaneSocket::Make(SocketHandle socket,
                                             LaneLoop& loop,
                                             Observer& observer) {
  std::shared_ptr<LaneSocket> lane(
      new LaneSocket(std::move(socket), loop, observer));
  loop.Watch(lane->socket_.fd(), *lane);
  return lane;
}

LaneSocket::LaneSocket(SocketHandle socket, LaneLoop& loop, Observer& observer)
    : socket_(std::move(socket)),
      loop_(loop),
      observer_(observer),
      reader_(kMaxMessageBytes) {}

void LaneSocket::Read() {
  reading_ = true;
  // Not from here: the observer may hold a lock.
  loop_.Post([self = shared_from_this()] { self->Receive(); });
}

bool LaneSocket::CompleteRead() {
  absl::StatusOr<std::optional<grpc::ByteBuffer>> frame = reader_.Take();
  if (!frame.ok()) {
    Break(frame.status());
    return true;
  }
  if (!frame->has_value()) return false;
  reading_ = false;
  observer_.OnLaneRead(absl::OkStatus(), **std::move(frame));
  return true;
}

void LaneSocket::Receive() {
  const std::shared_ptr<LaneSocket> self = shared_from_this();
  while (reading_) {
    if (!is_watched_) {
      absl::Status broken;
      {
        absl::MutexLock lock(&mu_);
        broken = broken_;
      }
      reading_ = false;
      return observer_.OnLaneRead(broken, {});
    }
    if (CompleteRead()) continue;
    if (!readable_) return;
    std::array<iovec, 2> pieces = reader_.NextPieces();
    msghdr message = {};
    message.msg_iov = pieces.data();
    message.msg_iovlen = pieces.size();
    const ssize_t bytes = recvmsg(socket_.fd(), &message, MSG_DONTWAIT);
    if (bytes > 0) {
      reader_.Received(bytes);
    } else if (bytes < 0 && errno == EAGAIN) {
      readable_ = false;
    } else if (bytes < 0 && errno != EINTR) {
      Break(SystemError("receive"));
    } else if (bytes == 0) {
      Break(absl::UnavailableError("lane: the peer has closed it"));
    }
  }
}

void LaneSocket::Write(const grpc::ByteBuffer& message) {
  bool completed;
  {
    absl::MutexLock lock(&mu_);
    if (closed_) return;
    writing_ = true;
    length_ = htole64(message.Length());
    slices_.clear();
    (void)message.Dump(&slices_);
    pieces_.clear();
    next_piece_ = 0;
    pieces_.push_back({&length_, sizeof(length_)});
    for (const grpc::Slice& slice : slices_) {
      pieces_.push_back({const_cast<uint8_t*>(slice.begin()), slice.size()});
    }
    completed = Send();
  }
  if (!completed) return;
  loop_.Post([self = shared_from_this()] {
    absl::Status status;
    {
      absl::MutexLock lock(&self->mu_);
      if (!std::exchange(self->writing_, false)) return;
      status = self->broken_;
    }
    self->observer_.OnLaneWritten(status);
  });
}

bool LaneSocket::Send() {
  while (broken_.ok() && next_piece_ < pieces_.size()) {
    msghdr message = {};
    message.msg_iov = pieces_.data() + next_piece_;
    message.msg_iovlen =
        std::min<size_t>(pieces_.size() - next_piece_, IOV_MAX);
    const ssize_t bytes =
        sendmsg(socket_.fd(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0 && errno == EAGAIN) return false;
    if (bytes < 0) {
      broken_ = SystemError("send");
      break;
    }
    size_t left = bytes;
    while (next_piece_ < pieces_.size() &&
           left >= pieces_[next_piece_].iov_len) {
      left -= pieces_[next_piece_++].iov_len;
    }
    if (left == 0) continue;
    iovec& piece = pieces_[next_piece_];
    piece.iov_base = static_cast<char*>(piece.iov_base) + left;
    piece.iov_len -= left;
  }
  slices_.clear();
  return true;
}

void LaneSocket::OnEvents(uint32_t events) {
  const std::shared_ptr<LaneSocket> self = shared_from_this();
  if ((events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) != 0) {
    bool completed;
    absl::Status status;
    {
      absl::MutexLock lock(&mu_);
      completed = writing_ && next_piece_ < pieces_.size() && Send();
      if (completed) writing_ = false;
      status = broken_;
    }
    if (completed) observer_.OnLaneWritten(status);
  }
  if ((events & ~EPOLLOUT) != 0) {
    readable_ = true;
    Receive();
  }
}

void LaneSocket::Close() {
  {
    absl::MutexLock lock(&mu_);
    closed_ = true;
  }
  Break(absl::CancelledError("lane: closed"));
}

void LaneSocket::Break(const absl::Status& status) {
  const std::shared_ptr<LaneSocket> self = shared_from_this();
  if (std::exchange(is_watched_, false)) {
    loop_.Forget(socket_.fd(), *this);
    // The descriptor stays until nobody sends to it.
    shutdown(socket_.fd(), SHUT_RDWR);
  }
  bool was_writing;
  absl::Status broken;
  {
    absl::MutexLock lock(&mu_);
    broken_.Update(status);
    broken = broken_;
    was_writing = std::exchange(writing_, false);
    slices_.clear();
  }
  if (was_writing) observer_.OnLaneWritten(broken);
  if (std::exchange(reading_, false)) observer_.OnLaneRead(broken, {});
}

}  // namespace parasol
