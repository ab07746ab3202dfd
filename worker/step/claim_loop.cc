#include "worker/step/claim_loop.h"

#include <utility>

#include "cluster/rpc/proto_duration.h"

namespace parasol {
namespace {

// What no repetition of a claim will change. All else may pass: the chief is
// away, its connection broke, or it has restarted and waits for our
// registration (the session's heartbeat sees to it).
bool IsRefusal(const absl::Status& status) {
  return absl::IsInvalidArgument(status) ||
         absl::IsFailedPrecondition(status) ||
         absl::IsPermissionDenied(status) || absl::IsUnauthenticated(status) ||
         absl::IsUnimplemented(status);
}

}  // namespace

ClaimLoop::ClaimLoop(Options options, ChiefClient& chief, Clock& clock)
    : options_(std::move(options)), chief_(chief), clock_(clock) {}

void ClaimLoop::Begin() {
  thread_ = std::thread([this] { Run(); });
}

void ClaimLoop::End() {
  StopLoop();
  thread_.join();
}

void ClaimLoop::Registers() {
  if (options_.files != nullptr) options_.files->StartOver();
}

void ClaimLoop::StopLoop() {
  absl::MutexLock lock(&mu_);
  stopped_ = true;
}

absl::Status ClaimLoop::Fault() const {
  if (stopped_) return absl::CancelledError("the worker is stopping");
  return failure_;
}

bool ClaimLoop::ShouldEnd() const {
  return stopped_ || !failure_.ok() || (no_more_ && IsAllReported());
}

void ClaimLoop::Run() {
  while (true) {
    wire::ClaimStepsRequest request;
    {
      absl::MutexLock lock(&mu_);
      // From one call to the next: one that has waited at the chief is repeated
      // at once.
      clock_.AwaitWithTimeout(mu_,
                              absl::Condition(this, &ClaimLoop::ShouldCall),
                              last_call_ + Interval() - clock_.Now());
      if (ShouldEnd()) return;
      request = NextRequest();
    }
    const absl::StatusOr<wire::ClaimStepsResponse> response =
        chief_.ClaimSteps(request);
    absl::MutexLock lock(&mu_);
    Hear(response);
  }
}

wire::ClaimStepsRequest ClaimLoop::NextRequest() {
  const absl::Time now = clock_.Now();
  wire::ClaimStepsRequest request;
  *request.mutable_task() = options_.task;
  request.set_train_examples(options_.train_examples);
  request.mutable_shard_examples()->Assign(options_.shard_examples.begin(),
                                           options_.shard_examples.end());
  if (options_.files != nullptr) options_.files->Tell(request);
  Ask(now - last_call_, request);
  if (MayWait()) *request.mutable_wait() = ToProto(options_.claim_wait);
  last_call_ = now;
  return request;
}

void ClaimLoop::Hear(const absl::StatusOr<wire::ClaimStepsResponse>& response) {
  if (!response.ok()) {
    if (IsRefusal(response.status())) failure_ = response.status();
    return;
  }
  // Before a batch of them is taken.
  if (options_.files != nullptr) options_.files->Take(*response);
  Take(*response);
  is_finishing_ = response->phase() == wire::FINISHING;
  no_more_ = response->phase() == wire::COMPLETE;
  if (response->phase() == wire::FAILED) {
    failure_ = absl::FailedPreconditionError("the job has failed");
  }
}

}  // namespace parasol
