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
#include "cluster/trust/mutual_proof.h"

namespace parasol {
namespace {

using Steady = std::chrono::steady_clock;

Steady::time_point HelloDeadline() {
  return Steady::now() + absl::ToChronoMilliseconds(PayloadPort::kHelloLimit);
}

// Returns false if not all of it went: a new connection takes so few bytes at
// once.
bool SendAtOnce(const Descriptor& socket, absl::string_view bytes) {
  return send(socket.get(), bytes.data(), bytes.size(),
              MSG_DONTWAIT | MSG_NOSIGNAL) ==
         static_cast<ssize_t>(bytes.size());
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
  for (const auto& [id, expected] : expected_) {
    expected.taken(absl::CancelledError("the ps is shutting down"));
  }
}

PayloadOffer PayloadPort::Expect(Taken taken) {
  const PayloadOffer offer = PayloadOffer::Draw(port_);
  {
    absl::MutexLock lock(&mu_);
    expected_[offer.id] = {offer.secret, std::move(taken), HelloDeadline()};
  }
  // The thread has a deadline to keep.
  const uint64_t one = 1;
  CHECK(write(wake_.get(), &one, sizeof(one)) == sizeof(one));
  return offer;
}

bool PayloadPort::Forget(const PayloadId& id) {
  absl::MutexLock lock(&mu_);
  return expected_.erase(id) > 0;
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
  const bool is_challenged = !stranger.told.empty();
  const size_t wanted = kPayloadHelloBytes + (is_challenged ? kProofBytes : 0);
  if (!Strangers::Receive(stranger, wanted)) return false;
  const std::string& heard = stranger.received;
  if (kPayloadHello.substr(0, heard.size()) !=
      absl::string_view(heard).substr(0, kPayloadHello.size())) {
    return false;
  }
  if (heard.size() < wanted) return true;
  if (!is_challenged) return Challenge(stranger);
  Take(stranger);
  return false;
}

bool PayloadPort::Challenge(Strangers::Stranger& stranger) {
  std::string secret;
  {
    absl::MutexLock lock(&mu_);
    const auto it = expected_.find(IdInPayloadHello(stranger.received));
    if (it == expected_.end()) return false;
    secret = it->second.secret;
  }
  stranger.told = DrawNonce();
  return SendAtOnce(
      stranger.socket,
      absl::StrCat(stranger.told, ProofOf(secret, ProofSide::kAnswerer,
                                          stranger.received, stranger.told)));
}

void PayloadPort::Take(Strangers::Stranger& stranger) {
  const absl::string_view heard = stranger.received;
  const absl::string_view hello = heard.substr(0, kPayloadHelloBytes);
  Taken taken;
  {
    absl::MutexLock lock(&mu_);
    const auto it = expected_.find(IdInPayloadHello(hello));
    if (it == expected_.end() ||
        !IsProof(heard.substr(kPayloadHelloBytes), it->second.secret,
                 ProofSide::kOpener, hello, stranger.told)) {
      return;
    }
    taken = std::move(it->second.taken);
    expected_.erase(it);
  }
  if (!SetPayloadSocketOptions(stranger.socket.get()).ok() ||
      !SendAtOnce(stranger.socket, kPayloadWelcome)) {
    taken(absl::UnavailableError("lane: the connection broke at once"));
  } else {
    taken(std::move(stranger.socket));
  }
}

void PayloadPort::EndLate() {
  const SteadyTime now = Steady::now();
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
