#include "cluster/collective/rank_connection.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "cluster/collective/rank_hello.h"
#include "cluster/payload_lane/pacing.h"
#include "cluster/trust/mutual_proof.h"

namespace parasol {
namespace {

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

absl::Status SystemError(const char* what, int error) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(error)));
}

absl::StatusOr<AddressList> Resolve(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) {
    return absl::FailedPreconditionError("the address has no port");
  }
  const std::string host(
      absl::StripSuffix(absl::StripPrefix(address.substr(0, colon), "["), "]"));
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), address.substr(colon + 1).c_str(),
                                &hints, &found);
  if (error != 0) {
    return absl::UnavailableError(absl::StrCat("name: ", gai_strerror(error)));
  }
  return AddressList(found, &freeaddrinfo);
}

// Waits until the socket has one of the events.
absl::Status AwaitEvents(int fd, short events, absl::Time deadline) {
  pollfd polled = {fd, events, 0};
  int count = 0;
  do {
    const absl::Duration left =
        std::max(deadline - Clock::Real().Now(), absl::ZeroDuration());
    count = poll(&polled, 1, absl::ToInt64Milliseconds(left));
  } while (count < 0 && errno == EINTR);
  if (count > 0) return absl::OkStatus();
  return absl::UnavailableError("no answer");
}

absl::Status Connect(int fd, const addrinfo& address, absl::Time deadline) {
  sockaddr_storage to = {};
  std::memcpy(&to, address.ai_addr, address.ai_addrlen);
  AvoidPacing(fd, to);
  if (connect(fd, address.ai_addr, address.ai_addrlen) == 0) {
    return absl::OkStatus();
  }
  if (errno != EINPROGRESS) return SystemError("connect", errno);
  RETURN_IF_ERROR(AwaitEvents(fd, POLLOUT, deadline));
  int error = 0;
  socklen_t size = sizeof(error);
  getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  return error == 0 ? absl::OkStatus() : SystemError("connect", error);
}

absl::Status ToStatus(char answer) {
  switch (static_cast<HelloAnswer>(answer)) {
    case HelloAnswer::kWelcome:
      return absl::OkStatus();
    case HelloAnswer::kTooEarly:
      return absl::UnavailableError("has not joined this group yet");
    case HelloAnswer::kOver:
      return absl::FailedPreconditionError("has joined a later group");
    case HelloAnswer::kRefused:
      return absl::FailedPreconditionError(
          "refuses this rank: it has another secret or other ranks");
    case HelloAnswer::kChallenge:
      break;
    case HelloAnswer::kOtherVersion:
      return absl::InvalidArgumentError(
          "speaks another version of the protocol between workers: all workers "
          "must be of one build");
  }
  // One answer may have been damaged on its way.
  return absl::UnavailableError(
      "answers as no worker does: another program may have its port");
}

absl::Status SendBytes(int fd, const std::string& bytes) {
  // A new connection takes so few bytes at once.
  if (send(fd, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL) !=
      static_cast<ssize_t>(bytes.size())) {
    return SystemError("send", errno);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReceiveBytes(int fd, size_t bytes,
                                         absl::Time deadline) {
  std::string heard(bytes, '\0');
  for (size_t have = 0; have < bytes;) {
    RETURN_IF_ERROR(AwaitEvents(fd, POLLIN, deadline));
    const ssize_t count =
        recv(fd, heard.data() + have, bytes - have, MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (count < 0) return SystemError("receive", errno);
    if (count == 0) return absl::UnavailableError("closed the connection");
    have += count;
  }
  return heard;
}

// Opens the connection as rank_hello.h says.
absl::Status SayHello(int fd, const CollectiveGroup& group, int to,
                      absl::Time deadline) {
  RankHello hello = RankHello::Of(group, to);
  hello.nonce = DrawNonce();
  const std::string said = hello.Encode();
  RETURN_IF_ERROR(SendBytes(fd, said));
  ASSIGN_OR_RETURN(std::string answer, ReceiveBytes(fd, 1, deadline));
  if (answer[0] != static_cast<char>(HelloAnswer::kChallenge)) {
    // Whoever has proven nothing welcomes nobody.
    return ToStatus(answer[0] == static_cast<char>(HelloAnswer::kWelcome)
                        ? '\0'
                        : answer[0]);
  }
  ASSIGN_OR_RETURN(const std::string challenge,
                   ReceiveBytes(fd, RankHello::kChallengeBytes, deadline));
  const std::string nonce = challenge.substr(0, kNonceBytes);
  if (!IsProof(challenge.substr(kNonceBytes), group.secret,
               ProofSide::kAnswerer, said, nonce)) {
    return absl::FailedPreconditionError(
        "does not prove that it is of this group: it has another secret");
  }
  RETURN_IF_ERROR(
      SendBytes(fd, ProofOf(group.secret, ProofSide::kOpener, said, nonce)));
  ASSIGN_OR_RETURN(answer, ReceiveBytes(fd, 1, deadline));
  return ToStatus(answer[0]);
}

// Connects to the first of the addresses that can be reached, and opens the
// connection.
absl::StatusOr<Descriptor> ConnectToOne(const addrinfo& addresses,
                                        const CollectiveGroup& group, int to,
                                        absl::Time deadline) {
  absl::Status status;
  for (const addrinfo* each = &addresses; each != nullptr;
       each = each->ai_next) {
    Descriptor socket(::socket(each->ai_family,
                               SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket.is_open()) return SystemError("socket", errno);
    status = SetRankSocketOptions(socket.get());
    if (status.ok()) status = Connect(socket.get(), *each, deadline);
    if (!status.ok()) continue;
    RETURN_IF_ERROR(SayHello(socket.get(), group, to, deadline));
    return socket;
  }
  return status;
}

}  // namespace

absl::Status SetRankSocketOptions(int fd) {
  const int on = 1;
  if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0 ||
      fcntl(fd, F_SETFL, O_NONBLOCK) != 0) {
    return SystemError("socket options", errno);
  }
  return absl::OkStatus();
}

absl::StatusOr<Descriptor> ConnectToRank(const CollectiveGroup& group, int to,
                                         absl::Duration limit) {
  const absl::Time deadline = Clock::Real().Now() + limit;
  ASSIGN_OR_RETURN(const AddressList addresses,
                   Resolve(group.ranks[to].address));
  absl::StatusOr<Descriptor> socket =
      ConnectToOne(*addresses, group, to, deadline);
  // Whether a proof was damaged on its way or is another secret's shows when it
  // comes again.
  if (absl::IsFailedPrecondition(socket.status())) {
    socket = ConnectToOne(*addresses, group, to, deadline);
  }
  return socket;
}

}  // namespace parasol
