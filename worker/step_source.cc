#include "worker/step_source.h"

#include <thread>
#include <utility>

#include "absl/strings/str_join.h"
#include "base/log.h"
#include "cluster/rpc/proto_duration.h"
#include "worker/step_lease.h"

namespace parasol {
namespace {

constexpr absl::Duration kLogInterval = absl::Seconds(10);

class Claimer : public ChiefStepSource {
 public:
  Claimer(Options options, ChiefClient& chief, Clock& clock)
      : options_(std::move(options)),
        chief_(chief),
        clock_(clock),
        thread_([this] { ClaimUntilStopped(); }) {}

  ~Claimer() override {
    Stop();
    thread_.join();
  }

  bool CanStartNow() override {
    absl::MutexLock lock(&mu_);
    return CanDecide();
  }

  absl::StatusOr<bool> Start() override {
    absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(this, &Claimer::CanDecide));
    if (stopped_) return absl::CancelledError("the worker is stopping");
    if (!failure_.ok()) return failure_;
    return !no_more_ && lease_.TryStart();
  }

  void Complete() override {
    absl::MutexLock lock(&mu_);
    lease_.Complete();
  }

  void Stop() override {
    absl::MutexLock lock(&mu_);
    stopped_ = true;
  }

  int64_t completed_steps() const override {
    absl::MutexLock lock(&mu_);
    return lease_.completed();
  }

 private:
  bool CanDecide() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return stopped_ || !failure_.ok() || lease_.held() > 0 || no_more_;
  }
  bool ShouldEnd() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return stopped_ || !failure_.ok() ||
           (no_more_ && lease_.completed() == lease_.started());
  }
  // The loop can do nothing but wait for steps.
  bool IsIdle() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return lease_.held() == 0 && lease_.completed() == lease_.started();
  }
  // Worth a call before the interval is over: the loop is about to need steps,
  // or others may be waiting for the ones it has completed.
  bool IsHungry() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return ShouldEnd() || (lease_.held() == 0 && !asked_in_vain_) ||
           (IsIdle() && lease_.completed() > last_completed_);
  }

  void ClaimUntilStopped() {
    while (true) {
      wire::ClaimStepsRequest request;
      {
        absl::MutexLock lock(&mu_);
        // From one call to the next: one that has waited at the chief is
        // repeated at once.
        clock_.AwaitWithTimeout(
            mu_, absl::Condition(this, &Claimer::IsHungry),
            last_report_ + options_.report_interval - clock_.Now());
        if (ShouldEnd()) return;
        request = NextRequest();
      }
      absl::StatusOr<wire::ClaimStepsResponse> response =
          chief_.ClaimSteps(request);
      absl::MutexLock lock(&mu_);
      Take(request, response);
    }
  }

  wire::ClaimStepsRequest NextRequest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const absl::Time now = clock_.Now();
    const int64_t wanted =
        StepLease::WantedSteps(lease_.completed() - last_completed_,
                               now - last_report_, options_.report_interval);
    last_completed_ = lease_.completed();
    last_report_ = now;
    wire::ClaimStepsRequest request;
    *request.mutable_task() = options_.task;
    request.set_completed_steps(lease_.completed());
    request.set_want(wanted > lease_.held() ? wanted - lease_.held() : 0);
    request.set_train_examples(options_.train_examples);
    request.set_granted_steps(lease_.granted());
    if (IsIdle()) *request.mutable_wait() = ToProto(options_.claim_wait);
    return request;
  }

  void Take(const wire::ClaimStepsRequest& request,
            const absl::StatusOr<wire::ClaimStepsResponse>& response)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    asked_in_vain_ = true;
    if (!response.ok()) {
      if (IsRefusal(response.status())) failure_ = response.status();
      return;
    }
    lease_.Grant(response->granted_steps());
    asked_in_vain_ = lease_.held() == 0;
    if (IsIdle() && !response->awaited_task().empty()) {
      LOG_EVERY(INFO, kLogInterval)
          << "bounded staleness: waiting for the steps of "
          << absl::StrJoin(response->awaited_task(), ", ");
    }
    no_more_ = response->phase() == wire::FINISHING ||
               response->phase() == wire::COMPLETE;
    if (response->phase() == wire::FAILED) {
      failure_ = absl::FailedPreconditionError("the job has failed");
    }
  }

  const Options options_;
  ChiefClient& chief_;
  Clock& clock_;

  mutable absl::Mutex mu_;
  StepLease lease_ ABSL_GUARDED_BY(mu_);
  bool no_more_ ABSL_GUARDED_BY(mu_) = false;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  // The last call gave nothing: wait a whole interval before the next one.
  bool asked_in_vain_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status failure_ ABSL_GUARDED_BY(mu_);
  int64_t last_completed_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Time last_report_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace

std::unique_ptr<ChiefStepSource> ChiefStepSource::Create(Options options,
                                                         ChiefClient& chief,
                                                         Clock& clock) {
  return std::make_unique<Claimer>(std::move(options), chief, clock);
}

}  // namespace parasol
