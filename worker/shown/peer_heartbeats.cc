#include "worker/shown/peer_heartbeats.h"

#include <utility>

#include "absl/status/statusor.h"

namespace parasol {

PeerHeartbeats::PeerHeartbeats(wire::Task task,
                               std::unique_ptr<ChiefClient> first, Clock& clock)
    : task_(std::move(task)),
      first_(std::move(first)),
      clock_(clock),
      inspection_(clock),
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
  if (answer.ok()) inspection_.Heard(*answer, sent, clock_.Now());
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
