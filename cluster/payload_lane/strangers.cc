#include "cluster/payload_lane/strangers.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/log.h"
#include "cluster/payload_lane/pacing.h"

namespace parasol {
namespace {

using Clock = std::chrono::steady_clock;

// Longest sleep while somebody has a deadline.
constexpr int kTickMillis = 200;

bool IsOutOfResources(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS ||
         error == ENOMEM;
}

}  // namespace

Strangers::Strangers(Descriptor listening, std::string what)
    : listening_(std::move(listening)), what_(std::move(what)) {}

void Strangers::Wait(const Descriptor& wake, bool has_deadline) {
  std::vector<pollfd> polled;
  polled.push_back({wake.get(), POLLIN, 0});
  polled.push_back(
      {listening_.get(), static_cast<short>(may_accept_ ? POLLIN : 0), 0});
  for (const Stranger& stranger : strangers_) {
    polled.push_back({stranger.socket.get(), POLLIN, 0});
  }
  has_deadline |= !strangers_.empty() || !may_accept_;
  may_accept_ = true;
  poll(polled.data(), polled.size(), has_deadline ? kTickMillis : -1);
}

void Strangers::Accept() {
  // At most so many at once: those who connected before have a turn.
  for (size_t i = 0; i < kMax; ++i) {
    Descriptor socket(accept4(listening_.get(), nullptr, nullptr,
                              SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.is_open()) {
      // It would be told at once, again and again.
      if (IsOutOfResources(errno)) {
        LOG_EVERY(WARNING, absl::Seconds(10))
            << "no " << what_ << " is accepted: " << std::strerror(errno)
            << "; raise this process's limits (ulimit -n)";
        may_accept_ = false;
      }
      return;
    }
    PaceIfRemote(socket.get());
    if (strangers_.size() == kMax) strangers_.pop_front();
    strangers_.push_back(
        {.socket = std::move(socket),
         .received = "",
         .deadline = Clock::now() + absl::ToChronoMilliseconds(kHelloLimit)});
  }
}

void Strangers::HearEach(absl::FunctionRef<bool(Stranger& stranger)> hear) {
  const Clock::time_point now = Clock::now();
  for (auto stranger = strangers_.begin(); stranger != strangers_.end();) {
    const bool stays = hear(*stranger) && stranger->deadline > now;
    stranger = stays ? std::next(stranger) : strangers_.erase(stranger);
  }
}

bool Strangers::Receive(Stranger& stranger, size_t bytes) {
  std::array<char, 256> buffer;
  const size_t wanted =
      std::min(bytes - stranger.received.size(), buffer.size());
  const ssize_t count =
      recv(stranger.socket.get(), buffer.data(), wanted, MSG_DONTWAIT);
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  stranger.received.append(buffer.data(), count);
  return count > 0;
}

}  // namespace parasol
