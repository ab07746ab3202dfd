#include "cluster/payload_lane/payload_connection.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "cluster/payload_lane/pacing.h"
#include "cluster/trust/mutual_proof.h"

namespace parasol {
namespace {

// Bytes that the ps says.
constexpr size_t kAnswerBytes = kPayloadChallengeBytes + kPayloadWelcome.size();

struct Address {
  sockaddr_storage bytes = {};
  socklen_t size = 0;
};

// Returns the host of gRPC's name of a peer, with another port.
absl::StatusOr<Address> AddressOf(absl::string_view peer, int port) {
  std::string text = absl::StrReplaceAll(peer, {{"%5B", "["}, {"%5D", "]"}});
  absl::string_view rest = text;
  const bool is_ipv6 = absl::ConsumePrefix(&rest, "ipv6:");
  if (!is_ipv6 && !absl::ConsumePrefix(&rest, "ipv4:")) {
    return absl::UnavailableError(
        absl::StrCat("the ps is at ", peer, ", which is no IP address"));
  }
  absl::string_view host = rest.substr(0, rest.rfind(':'));
  absl::ConsumePrefix(&host, "[");
  absl::ConsumeSuffix(&host, "]");
  Address address;
  bool is_valid;
  if (is_ipv6) {
    auto* ip = reinterpret_cast<sockaddr_in6*>(&address.bytes);
    ip->sin6_family = AF_INET6;
    ip->sin6_port = htons(port);
    address.size = sizeof(*ip);
    is_valid =
        inet_pton(AF_INET6, std::string(host).c_str(), &ip->sin6_addr) == 1;
  } else {
    auto* ip = reinterpret_cast<sockaddr_in*>(&address.bytes);
    ip->sin_family = AF_INET;
    ip->sin_port = htons(port);
    address.size = sizeof(*ip);
    is_valid =
        inet_pton(AF_INET, std::string(host).c_str(), &ip->sin_addr) == 1;
  }
  if (!is_valid) {
    return absl::UnavailableError(
        absl::StrCat("the ps is at ", peer, ", which is no IP address"));
  }
  return address;
}

absl::Status SystemError(const char* what, int error) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(error)));
}

}  // namespace

std::shared_ptr<PayloadConnection> PayloadConnection::Start(
    absl::string_view peer, const PayloadOffer& offer, SocketLoop& loop,
    Connected connected) {
  std::shared_ptr<PayloadConnection> connection(
      new PayloadConnection(offer, loop, std::move(connected)));
  const absl::Status begun = connection->Begin(peer);
  if (!begun.ok()) connection->End(begun);
  return connection;
}

absl::Status PayloadConnection::Begin(absl::string_view peer) {
  ASSIGN_OR_RETURN(const Address address, AddressOf(peer, offer_.port));
  socket_ = Descriptor(socket(address.bytes.ss_family,
                              SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket_.is_open()) return SystemError("socket", errno);
  RETURN_IF_ERROR(SetPayloadSocketOptions(socket_.get()));
  AvoidPacing(socket_.get(), address.bytes);
  loop_.Watch(socket_.get(), *this);
  is_watched_ = true;
  if (connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address.bytes),
              address.size) != 0 &&
      errno != EINPROGRESS) {
    return SystemError("connect", errno);
  }
  loop_.PostLater(kLimit, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) {
      self->End(absl::UnavailableError(
          absl::StrCat("no answer within ", absl::FormatDuration(kLimit))));
    }
  });
  return absl::OkStatus();
}

void PayloadConnection::OnEvents(uint32_t events) {
  const std::shared_ptr<PayloadConnection> self = shared_from_this();
  int error = 0;
  socklen_t size = sizeof(error);
  getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return End(SystemError("connect", error));
  if (hello_.empty() && (events & EPOLLOUT) == 0) return;
  const absl::Status status = Advance();
  if (!status.ok() || received_.size() == kAnswerBytes) End(status);
}

absl::Status PayloadConnection::Advance() {
  if (hello_.empty()) {
    hello_ = MakePayloadHello(offer_.id, DrawNonce());
    RETURN_IF_ERROR(Say(hello_));
  }
  char bytes[kAnswerBytes];
  while (received_.size() < kAnswerBytes) {
    const ssize_t count = recv(socket_.get(), bytes,
                               kAnswerBytes - received_.size(), MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return absl::OkStatus();
    if (count < 0) return SystemError("receive", errno);
    if (count == 0) return absl::UnavailableError("the secret was refused");
    received_.append(bytes, count);
    if (received_.size() >= kPayloadChallengeBytes) {
      RETURN_IF_ERROR(Prove());
    }
  }
  if (absl::string_view(received_).substr(kPayloadChallengeBytes) !=
      kPayloadWelcome) {
    return absl::UnavailableError("another program answers");
  }
  return absl::OkStatus();
}

absl::Status PayloadConnection::Prove() {
  if (std::exchange(has_proven_, true)) return absl::OkStatus();
  const absl::string_view answer = received_;
  const absl::string_view nonce = answer.substr(0, kNonceBytes);
  if (!IsProof(answer.substr(kNonceBytes, kProofBytes), offer_.secret,
               ProofSide::kAnswerer, hello_, nonce)) {
    return absl::UnavailableError("another program answers");
  }
  return Say(ProofOf(offer_.secret, ProofSide::kOpener, hello_, nonce));
}

absl::Status PayloadConnection::Say(absl::string_view bytes) {
  // A new connection takes so few bytes at once.
  if (send(socket_.get(), bytes.data(), bytes.size(),
           MSG_DONTWAIT | MSG_NOSIGNAL) != static_cast<ssize_t>(bytes.size())) {
    return SystemError("send", errno);
  }
  return absl::OkStatus();
}

void PayloadConnection::End(const absl::Status& status) {
  if (connected_ == nullptr) return;
  const std::shared_ptr<PayloadConnection> self = shared_from_this();
  if (std::exchange(is_watched_, false)) loop_.Forget(socket_.get(), *this);
  const Connected connected = std::exchange(connected_, nullptr);
  if (status.ok()) {
    connected(std::move(socket_));
  } else {
    connected(absl::Status(
        status.code(), absl::StrCat("payload lane to port ", offer_.port, ": ",
                                    status.message())));
  }
}

}  // namespace parasol
