#include "cluster/collective/rank_port.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "cluster/payload_lane/listening_socket.h"

namespace parasol {
namespace {

using Clock = std::chrono::steady_clock;

// Longest sleep while somebody has a deadline.
constexpr int kTickMillis = 200;

// Returns true if both are the same; takes as long wherever they differ.
bool IsSameSecret(const std::string& a, const std::string& b) {
  unsigned char difference = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  }
  return difference == 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RankPort>> RankPort::Start(
    const std::string& host, int port) {
  ASSIGN_OR_RETURN(Descriptor socket,
                   ListenOn(host, port, "collective operations"));
  Descriptor wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.is_open()) {
    return absl::UnavailableError(
        absl::StrCat("collective operations: eventfd: ", std::strerror(errno)));
  }
  const int chosen = PortOf(socket);
  return std::unique_ptr<RankPort>(
      new RankPort(std::move(socket), std::move(wake), chosen));
}

RankPort::RankPort(Descriptor listening, Descriptor wake, int port)
    : listening_(std::move(listening)),
      wake_(std::move(wake)),
      port_(port),
      thread_([this] { Run(); }) {}

RankPort::~RankPort() {
  {
    absl::MutexLock lock(&mu_);
    stopped_ = true;
  }
  const uint64_t one = 1;
  CHECK(write(wake_.get(), &one, sizeof(one)) == sizeof(one));
  thread_.join();
}

void RankPort::Expect(const CollectiveGroup& group) {
  absl::MutexLock lock(&mu_);
  group_ = group;
  connected_.clear();
}

std::map<int, Descriptor> RankPort::TakeConnected() {
  absl::MutexLock lock(&mu_);
  return std::exchange(connected_, {});
}

bool RankPort::IsStopped() const {
  absl::MutexLock lock(&mu_);
  return stopped_;
}

void RankPort::Run() {
  while (!IsStopped()) {
    Wait();
    Accept();
    const SteadyTime now = Clock::now();
    for (auto stranger = strangers_.begin(); stranger != strangers_.end();) {
      const bool stays = Hear(*stranger) && stranger->deadline > now;
      stranger = stays ? std::next(stranger) : strangers_.erase(stranger);
    }
  }
}

void RankPort::Wait() {
  std::vector<pollfd> polled;
  polled.push_back({wake_.get(), POLLIN, 0});
  polled.push_back(
      {listening_.get(), static_cast<short>(may_accept_ ? POLLIN : 0), 0});
  for (const Stranger& stranger : strangers_) {
    polled.push_back({stranger.socket.get(), POLLIN, 0});
  }
  const bool has_deadline = !strangers_.empty() || !may_accept_;
  may_accept_ = true;
  poll(polled.data(), polled.size(), has_deadline ? kTickMillis : -1);
}

void RankPort::Accept() {
  // At most so many at once: those who connected before have a turn.
  for (size_t i = 0; i < kMaxStrangers; ++i) {
    Descriptor socket(accept4(listening_.get(), nullptr, nullptr,
                              SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.is_open()) {
      // Out of descriptors or of memory: it would be told at once, again and
      // again.
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
          errno == ENOMEM) {
        LOG_EVERY(WARNING, absl::Seconds(10))
            << "no connection of another rank: " << std::strerror(errno);
        may_accept_ = false;
      }
      return;
    }
    if (strangers_.size() == kMaxStrangers) strangers_.pop_front();
    strangers_.push_back(
        {std::move(socket), "",
         Clock::now() + absl::ToChronoMilliseconds(kHelloLimit)});
  }
}

bool RankPort::Hear(Stranger& stranger) {
  char bytes[RankHello::kBytes];
  const ssize_t count =
      recv(stranger.socket.get(), bytes,
           sizeof(bytes) - stranger.received.size(), MSG_DONTWAIT);
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  if (count == 0) return false;
  stranger.received.append(bytes, count);
  if (RankHello::IsOther(stranger.received)) return false;
  if (stranger.received.size() < RankHello::kBytes) return true;
  const std::optional<RankHello> hello = RankHello::Parse(stranger.received);
  absl::MutexLock lock(&mu_);
  const char answer = static_cast<char>(AnswerTo(hello));
  // A new connection takes a byte at once.
  const bool said =
      send(stranger.socket.get(), &answer, 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
  if (said && answer == static_cast<char>(HelloAnswer::kWelcome)) {
    connected_[hello->from] = std::move(stranger.socket);
  }
  return false;
}

HelloAnswer RankPort::AnswerTo(const std::optional<RankHello>& hello) const {
  if (!hello.has_value()) return HelloAnswer::kRefused;
  if (!group_.has_value() || hello->epoch > group_->epoch) {
    return HelloAnswer::kTooEarly;
  }
  if (!IsSameSecret(hello->secret, group_->secret)) {
    return HelloAnswer::kRefused;
  }
  if (hello->epoch < group_->epoch) return HelloAnswer::kOver;
  const bool is_of_group = hello->members == FingerprintOfMembers(*group_) &&
                           hello->to == group_->own_rank &&
                           hello->from > group_->own_rank &&
                           hello->from < static_cast<int>(group_->ranks.size());
  return is_of_group ? HelloAnswer::kWelcome : HelloAnswer::kRefused;
}

}  // namespace parasol
