#include "worker/replica_source.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "cluster/rpc/proto_duration.h"

namespace parasol {
namespace {

constexpr absl::Duration kLogInterval = absl::Seconds(10);

class Asker : public ChiefReplicaSource {
 public:
  Asker(Options options, ChiefClient& chief, Clock& clock)
      : options_(std::move(options)),
        chief_(chief),
        clock_(clock),
        thread_([this] { AskUntilStopped(); }) {}

  ~Asker() override {
    Stop();
    thread_.join();
  }

  absl::StatusOr<std::optional<ReplicaShare>> Await() override {
    absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(this, &Asker::CanDecide));
    RETURN_IF_ERROR(Fault());
    if (no_more_) return std::nullopt;
    return share_;
  }

  absl::StatusOr<ReplicaShare> Now() override {
    absl::MutexLock lock(&mu_);
    RETURN_IF_ERROR(Fault());
    return share_;
  }

  void Complete(int64_t steps) override {
    absl::MutexLock lock(&mu_);
    share_.completed_steps = std::max(share_.completed_steps, steps);
  }

  void Stop() override {
    absl::MutexLock lock(&mu_);
    stopped_ = true;
  }

  int64_t completed_steps() const override {
    absl::MutexLock lock(&mu_);
    return share_.completed_steps;
  }

 private:
  absl::Status Fault() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (stopped_) return absl::CancelledError("the worker is stopping");
    return failure_;
  }
  bool HasStepsLeft() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return share_.completed_steps < share_.end_step;
  }
  bool CanDecide() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return stopped_ || !failure_.ok() || no_more_ ||
           (!share_.replicas.empty() && HasStepsLeft());
  }
  bool ShouldEnd() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return stopped_ || !failure_.ok() || no_more_;
  }
  // Worth a call before the interval is over: the last step is done.
  bool IsUrgent() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return ShouldEnd() || (share_.end_step > 0 && !HasStepsLeft() &&
                           share_.completed_steps > reported_);
  }

  void AskUntilStopped() {
    while (true) {
      wire::ClaimStepsRequest request;
      {
        absl::MutexLock lock(&mu_);
        // From one call to the next: one that has waited at the chief is
        // repeated at once.
        clock_.AwaitWithTimeout(
            mu_, absl::Condition(this, &Asker::IsUrgent),
            last_call_ + options_.report_interval - clock_.Now());
        if (ShouldEnd()) return;
        request = NextRequest();
      }
      const absl::StatusOr<wire::ClaimStepsResponse> response =
          chief_.ClaimSteps(request);
      absl::MutexLock lock(&mu_);
      Take(response);
    }
  }

  wire::ClaimStepsRequest NextRequest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    last_call_ = clock_.Now();
    reported_ = share_.completed_steps;
    wire::ClaimStepsRequest request;
    *request.mutable_task() = options_.task;
    request.set_completed_steps(share_.completed_steps);
    request.set_train_examples(options_.train_examples);
    request.set_assignment_version(share_.version);
    if (share_.replicas.empty() || !HasStepsLeft()) {
      *request.mutable_wait() = ToProto(options_.claim_wait);
    }
    return request;
  }

  void Take(const absl::StatusOr<wire::ClaimStepsResponse>& response)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (!response.ok()) {
      if (IsRefusal(response.status())) failure_ = response.status();
      return;
    }
    share_.version = response->assignment_version();
    share_.replicas.assign(response->replica().begin(),
                           response->replica().end());
    share_.end_step = response->end_step();
    share_.completed_steps =
        std::max(share_.completed_steps, response->global_step());
    no_more_ = response->phase() == wire::FINISHING ||
               response->phase() == wire::COMPLETE;
    if (share_.replicas.empty() && response->phase() == wire::TRAINING) {
      LOG_EVERY(INFO, kLogInterval)
          << "synchronous: other workers compute all replicas; waiting for one "
             "of them to leave";
    }
    if (response->phase() == wire::FAILED) {
      failure_ = absl::FailedPreconditionError("the job has failed");
    }
  }

  const Options options_;
  ChiefClient& chief_;
  Clock& clock_;

  mutable absl::Mutex mu_;
  ReplicaShare share_ ABSL_GUARDED_BY(mu_);
  bool no_more_ ABSL_GUARDED_BY(mu_) = false;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status failure_ ABSL_GUARDED_BY(mu_);
  int64_t reported_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Time last_call_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace

std::unique_ptr<ChiefReplicaSource> ChiefReplicaSource::Create(
    Options options, ChiefClient& chief, Clock& clock) {
  return std::make_unique<Asker>(std::move(options), chief, clock);
}

}  // namespace parasol
