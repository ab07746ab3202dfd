#include "cluster/payload_lane/payload_port.h"

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
    : strangers_(std::move(listening), "payload lane"),
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
    strangers_.Accept();
    strangers_.HearEach(
        [this](Strangers::Stranger& stranger) { return Hear(stranger); });
    EndLate();
  }
}

void PayloadPort::Wait() {
  bool has_deadline = false;
  {
    absl::MutexLock lock(&mu_);
    has_deadline = !expected_.empty();
  }
  strangers_.Wait(wake_, has_deadline);
  uint64_t wakes;
  (void)!read(wake_.get(), &wakes, sizeof(wakes));
}

bool PayloadPort::Hear(Strangers::Stranger& stranger) {
  if (!Strangers::Receive(stranger, kHelloBytes)) return false;
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
