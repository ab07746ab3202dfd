#include "cluster/payload_lane/payload_port.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "cluster/payload_lane/listening_socket.h"

namespace parasol {
namespace {

// Longest sleep while somebody has a deadline.
constexpr int kTickMillis = 200;
constexpr size_t kHelloBytes = kPayloadHello.size() + sizeof(PayloadSecret);

using Clock = std::chrono::steady_clock;

Clock::time_point HelloDeadline() {
  return Clock::now() + absl::ToChronoMilliseconds(PayloadPort::kHelloLimit);
}

}  // namespace

absl::StatusOr<std::unique_ptr<PayloadPort>> PayloadPort::Start(
    const std::string& host, int port) {
  ASSIGN_OR_RETURN(Descriptor socket, ListenOn(host, port, "payload lanes"));
  Descriptor wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.is_open()) {
    return absl::UnavailableError(
        absl::StrCat("payload lanes: eventfd: ", std::strerror(errno)));
  }
  const int chosen = PortOf(socket);
  return std::unique_ptr<PayloadPort>(
      new PayloadPort(std::move(socket), std::move(wake), chosen));
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
