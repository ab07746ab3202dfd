#include "cluster/collective/rank_port.h"

#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "cluster/payload_lane/listening_socket.h"

namespace parasol {
namespace {

// Returns false if the connection has ended: a new one takes a byte at once.
bool Say(const Strangers::Stranger& stranger, HelloAnswer answer) {
  return send(stranger.socket.get(), &answer, sizeof(answer),
              MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(answer);
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
    : strangers_(std::move(listening), "connection of another rank"),
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
    strangers_.Wait(wake_, /*has_deadline=*/false);
    strangers_.Accept();
    strangers_.HearEach(
        [this](Strangers::Stranger& stranger) { return Hear(stranger); });
  }
}

bool RankPort::Hear(Strangers::Stranger& stranger) {
  if (!Strangers::Receive(stranger, RankHello::kBytes)) return false;
  if (RankHello::IsOfOtherVersion(stranger.received)) {
    LOG_EVERY(WARNING, absl::Seconds(10))
        << "a process that connects as another worker speaks another version "
           "of the protocol between workers: all workers must be of one build";
    Say(stranger, HelloAnswer::kOtherVersion);
    return false;
  }
  if (RankHello::IsOther(stranger.received)) return false;
  if (stranger.received.size() < RankHello::kBytes) return true;
  const std::optional<RankHello> hello = RankHello::Parse(stranger.received);
  // One that was damaged on its way is said again.
  if (!hello.has_value()) return false;
  absl::MutexLock lock(&mu_);
  const HelloAnswer answer = AnswerTo(*hello, group_);
  if (Say(stranger, answer) && answer == HelloAnswer::kWelcome) {
    connected_[hello->from] = std::move(stranger.socket);
  }
  return false;
}

}  // namespace parasol
