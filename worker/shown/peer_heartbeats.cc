#include "worker/shown/peer_heartbeats.h"

#include <utility>

#include "absl/status/statusor.h"
#include "base/log.h"

namespace parasol {
namespace {

// Time between two warnings.
constexpr absl::Duration kPatience = absl::Seconds(30);

bool IsNotThere(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

}  // namespace

PeerHeartbeats::PeerHeartbeats(wire::Task task,
                               std::unique_ptr<ChiefClient> first, Clock& clock)
    : task_(std::move(task)),
      first_(std::move(first)),
      clock_(clock),
      inspection_(clock),
      answered_(clock.Now()),
      thread_([this] { Run(); }) {}

PeerHeartbeats::~PeerHeartbeats() {
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
  }
  thread_.join();
}

void PeerHeartbeats::Follow(Report report) {
  absl::MutexLock lock(&mu_);
  report_ = std::move(report);
}

void PeerHeartbeats::Beat() {
  wire::HeartbeatRequest request;
  *request.mutable_task() = task_;
  {
    absl::MutexLock lock(&mu_);
    if (report_ != nullptr) report_(request);
  }
  inspection_.Report(request);
  const absl::Time sent = clock_.Now();
  const absl::StatusOr<wire::HeartbeatResponse> answer =
      first_->Heartbeat(request);
  const absl::Time now = clock_.Now();
  if (answer.ok()) {
    inspection_.Heard(*answer, sent, now);
    answered_ = now;
    return;
  }
  // The first process may not have started, or starts anew.
  if (IsNotThere(answer.status()) && now - answered_ < kPatience) return;
  LOG_EVERY(WARNING, kPatience)
      << "worker/0 is not told how worker/" << task_.index()
      << " goes: " << answer.status().message()
      << "; give worker/0 this port in --status_address, on a host that "
         "worker/"
      << task_.index() << " reaches";
}

void PeerHeartbeats::Run() {
  while (true) {
    Beat();
    absl::MutexLock lock(&mu_);
    if (clock_.AwaitWithTimeout(mu_, absl::Condition(&stopping_),
                                inspection_.HasMore() ? kNext : kInterval)) {
      return;
    }
  }
}

}  // namespace parasol
