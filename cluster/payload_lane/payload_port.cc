#include "cluster/payload_lane/payload_port.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/log.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

constexpr int kBacklog = 256;
// Longest sleep while somebody has a deadline.
constexpr int kTickMillis = 200;
constexpr size_t kHelloBytes = kPayloadHello.size() + sizeof(PayloadSecret);

using Clock = std::chrono::steady_clock;

Clock::time_point HelloDeadline() {
  return Clock::now() + absl::ToChronoMilliseconds(PayloadPort::kHelloLimit);
}

absl::Status CantListen(const std::string& host, int port, const char* why) {
  return absl::InvalidArgumentError(
      absl::StrCat("can't take payload lanes on ", host, ":", port, ": ", why));
}

absl::StatusOr<Descriptor> Listen(const std::string& host, int port) {
  std::string name(absl::StripSuffix(absl::StripPrefix(host, "["), "]"));
  addrinfo hints = {};
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(name.c_str(), absl::StrCat(port).c_str(), &hints, &found);
  if (error != 0) return CantListen(host, port, gai_strerror(error));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found,
                                                                 &freeaddrinfo);
  Descriptor socket(::socket(found->ai_family,
                             SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) return CantListen(host, port, std::strerror(errno));
  const int on = 1;
  const int off = 0;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (found->ai_family == AF_INET6) {
    setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  }
  if (bind(socket.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      listen(socket.get(), kBacklog) != 0) {
    return CantListen(host, port, std::strerror(errno));
  }
  return socket;
}

int PortOf(const Descriptor& socket) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  CHECK(getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address),
                    &size) == 0);
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                   : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

}  // namespace

absl::StatusOr<std::unique_ptr<PayloadPort>> PayloadPort::Start(
    const std::string& host, int port) {
  // As RpcServer has it: "localhost" is two addresses.
  absl::StatusOr<Descriptor> socket =
      Listen(host == "localhost" ? "127.0.0.1" : host, port);
  // A machine may be without IPv6.
  if (!socket.ok() && host == "[::]") socket = Listen("0.0.0.0", port);
  RETURN_IF_ERROR(socket.status());
  Descriptor wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.is_open()) return CantListen(host, port, std::strerror(errno));
  const int chosen = PortOf(*socket);
  return std::unique_ptr<PayloadPort>(
      new PayloadPort(*std::move(socket), std::move(wake), chosen));
}

PayloadPort::PayloadPort(Descriptor listening, Descriptor wake, int port)
    : listening_(std::move(listening)),
      wake_(std::move(wake)),
      port_(port),
      thread_([this] { Run(); }) {}

PayloadPort::~PayloadPort() {
  {
    absl::MutexLock lock(&mu_);
    stopped_ = true;
  }
  const uint64_t one = 1;
  CHECK(write(wake_.get(), &one, sizeof(one)) == sizeof(one));
  thread_.join();
  absl::MutexLock lock(&mu_);
  for (const auto& [secret, expected] : expected_) {
    expected.taken(absl::CancelledError("the ps is shutting down"));
  }
}

PayloadOffer PayloadPort::Expect(Taken taken) {
  const PayloadOffer offer = {.port = port_, .secret = DrawPayloadSecret()};
  {
    absl::MutexLock lock(&mu_);
    expected_[offer.secret] = {std::move(taken), HelloDeadline()};
  }
  // The thread has a deadline to keep.
  const uint64_t one = 1;
  CHECK(write(wake_.get(), &one, sizeof(one)) == sizeof(one));
  return offer;
}

bool PayloadPort::Forget(const PayloadSecret& secret) {
  absl::MutexLock lock(&mu_);
  return expected_.erase(secret) > 0;
}

bool PayloadPort::IsStopped() const {
  absl::MutexLock lock(&mu_);
  return stopped_;
}

void PayloadPort::Run() {
  while (!IsStopped()) {
    Wait();
    Accept();
    for (auto stranger = strangers_.begin(); stranger != strangers_.end();) {
      stranger =
          Hear(*stranger) ? std::next(stranger) : strangers_.erase(stranger);
    }
    EndLate();
  }
}

void PayloadPort::Wait() {
  std::vector<pollfd> polled;
  polled.push_back({wake_.get(), POLLIN, 0});
  polled.push_back(
      {listening_.get(), static_cast<short>(may_accept_ ? POLLIN : 0), 0});
  for (const Stranger& stranger : strangers_) {
    polled.push_back({stranger.socket.get(), POLLIN, 0});
  }
  bool has_deadline = !strangers_.empty() || !may_accept_;
  may_accept_ = true;
  {
    absl::MutexLock lock(&mu_);
    has_deadline |= !expected_.empty();
  }
  poll(polled.data(), polled.size(), has_deadline ? kTickMillis : -1);
  uint64_t wakes;
  (void)!read(wake_.get(), &wakes, sizeof(wakes));
}

void PayloadPort::Accept() {
  // At most so many at once: those who said hello before have a turn.
  for (size_t i = 0; i < kMaxStrangers; ++i) {
    Descriptor socket(accept4(listening_.get(), nullptr, nullptr,
                              SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.is_open()) {
      // Out of descriptors: it would be told at once, again and again.
      if (errno == EMFILE || errno == ENFILE) {
        LOG_EVERY(WARNING, absl::Seconds(10))
            << "no payload lane: " << std::strerror(errno);
        may_accept_ = false;
      }
      return;
    }
    if (strangers_.size() == kMaxStrangers) strangers_.pop_front();
    strangers_.push_back({std::move(socket), "", HelloDeadline()});
  }
}

bool PayloadPort::Hear(Stranger& stranger) {
  char bytes[kHelloBytes];
  const ssize_t count =
      recv(stranger.socket.get(), bytes, kHelloBytes - stranger.received.size(),
           MSG_DONTWAIT);
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  if (count == 0) return false;
  stranger.received.append(bytes, count);
  const std::string& hello = stranger.received;
  if (kPayloadHello.substr(0, hello.size()) !=
      absl::string_view(hello).substr(0, kPayloadHello.size())) {
    return false;
  }
  if (hello.size() < kHelloBytes) return true;
  PayloadSecret secret;
  std::memcpy(secret.data(), hello.data() + kPayloadHello.size(),
              secret.size());
  Taken taken;
  {
    absl::MutexLock lock(&mu_);
    const auto it = expected_.find(secret);
    if (it == expected_.end()) return false;
    taken = std::move(it->second.taken);
    expected_.erase(it);
  }
  const absl::Status set = SetPayloadSocketOptions(stranger.socket.get());
  const ssize_t sent =
      send(stranger.socket.get(), kPayloadWelcome.data(),
           kPayloadWelcome.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (!set.ok() || sent != static_cast<ssize_t>(kPayloadWelcome.size())) {
    taken(absl::UnavailableError("lane: the connection broke at once"));
  } else {
    taken(std::move(stranger.socket));
  }
  return false;
}

void PayloadPort::EndLate() {
  const SteadyTime now = Clock::now();
  strangers_.remove_if(
      [&](const Stranger& stranger) { return stranger.deadline <= now; });
  std::vector<Taken> late;
  {
    absl::MutexLock lock(&mu_);
    for (auto it = expected_.begin(); it != expected_.end();) {
      if (it->second.deadline > now) {
        ++it;
        continue;
      }
      late.push_back(std::move(it->second.taken));
      it = expected_.erase(it);
    }
  }
  for (const Taken& taken : late) {
    taken(absl::DeadlineExceededError(absl::StrCat(
        "no payload lane came within ", absl::FormatDuration(kHelloLimit))));
  }
}

}  // namespace parasol
