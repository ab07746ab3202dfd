#include "cluster/payload_lane/lane_socket.h"

#include <limits.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace parasol {
namespace {

absl::Status SocketError(const char* what) {
  return absl::UnavailableError(
      absl::StrCat("lane: ", what, ": ", std::strerror(errno)));
}

absl::StatusOr<size_t> OfLane(const absl::StatusOr<size_t>& result) {
  if (result.ok()) return result;
  return absl::Status(result.status().code(),
                      absl::StrCat("lane: ", result.status().message()));
}

}  // namespace

LaneSocket::LaneSocket(Descriptor socket, const Trust* trust, PeerSide own,
                       const ExpectedPeer& peer) {
  if (trust != nullptr && trust->encrypts_all()) {
    tls_ = trust->BeginTls(std::move(socket), own, peer);
  } else {
    socket_ = std::move(socket);
  }
}

absl::StatusOr<size_t> LaneSocket::Receive(absl::Span<iovec> pieces) {
  if (tls_ != nullptr) return OfLane(tls_->Receive(pieces));
  msghdr message = {};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  while (true) {
    const ssize_t bytes = recvmsg(socket_.get(), &message, MSG_DONTWAIT);
    if (bytes > 0) return bytes;
    if (bytes == 0) {
      return absl::UnavailableError("lane: the peer has closed it");
    }
    if (errno == EAGAIN) return 0;
    if (errno != EINTR) return SocketError("receive");
  }
}

absl::StatusOr<size_t> LaneSocket::Send(absl::Span<const iovec> pieces) {
  if (tls_ != nullptr) return OfLane(tls_->Send(pieces));
  msghdr message = {};
  message.msg_iov = const_cast<iovec*>(pieces.data());
  message.msg_iovlen = std::min<size_t>(pieces.size(), IOV_MAX);
  while (true) {
    const ssize_t bytes =
        sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (bytes >= 0) return bytes;
    if (errno == EAGAIN) return 0;
    if (errno != EINTR) return SocketError("send");
  }
}

}  // namespace parasol
