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
#include "cluster/trust/mutual_proof.h"

namespace parasol {
namespace {

// Returns false if the connection has ended: a new one takes so few bytes at
// once.
bool Send(const Strangers::Stranger& stranger, absl::string_view bytes) {
  return send(stranger.socket.get(), bytes.data(), bytes.size(),
              MSG_DONTWAIT | MSG_NOSIGNAL) ==
         static_cast<ssize_t>(bytes.size());
}

bool Say(const Strangers::Stranger& stranger, HelloAnswer answer) {
  const char said = static_cast<char>(answer);
  return Send(stranger, absl::string_view(&said, 1));
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
  const bool is_challenged = !stranger.told.empty();
  const size_t wanted = RankHello::kBytes + (is_challenged ? kProofBytes : 0);
  if (!Strangers::Receive(stranger, wanted)) return false;
  if (RankHello::IsOfOtherVersion(stranger.received)) {
    LOG_EVERY(WARNING, absl::Seconds(10))
        << "a process that connects as another worker speaks another version "
           "of the protocol between workers: all workers must be of one build";
    Say(stranger, HelloAnswer::kOtherVersion);
    return false;
  }
  if (RankHello::IsOther(stranger.received)) return false;
  if (stranger.received.size() < wanted) return true;
  const std::optional<RankHello> hello = RankHello::Parse(stranger.received);
  // One that was damaged on its way is said again.
  if (!hello.has_value()) return false;
  absl::MutexLock lock(&mu_);
  const HelloAnswer answer = AnswerTo(*hello, group_);
  if (answer != HelloAnswer::kChallenge) {
    Say(stranger, answer);
    return false;
  }
  if (!is_challenged) return Challenge(stranger);
  Take(stranger, hello->from);
  return false;
}

bool RankPort::Challenge(Strangers::Stranger& stranger) {
  stranger.told = DrawNonce();
  return Say(stranger, HelloAnswer::kChallenge) &&
         Send(stranger, stranger.told) &&
         Send(stranger, ProofOf(group_->secret, ProofSide::kAnswerer,
                                stranger.received, stranger.told));
}

void RankPort::Take(Strangers::Stranger& stranger, int rank) {
  const absl::string_view heard = stranger.received;
  if (!IsProof(heard.substr(RankHello::kBytes), group_->secret,
               ProofSide::kOpener, heard.substr(0, RankHello::kBytes),
               stranger.told)) {
    Say(stranger, HelloAnswer::kRefused);
    return;
  }
  if (Say(stranger, HelloAnswer::kWelcome)) {
    connected_[rank] = std::move(stranger.socket);
  }
}

}  // namespace parasol
