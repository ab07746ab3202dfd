#include "worker/step/step_source.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_join.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "worker/step/claim_loop.h"
#include "worker/step/granted_steps.h"
#include "worker/step/step_grant.h"

namespace parasol {
namespace {

constexpr absl::Duration kGrantLogInterval = absl::Seconds(10);
// Number of batches that a loop is told in advance: more than readers decode
// ahead, but for those with a very large `prefetch_batches`.
constexpr size_t kMaxUpcoming = 32;

class Claimer : public ChiefStepSource, private ClaimLoop {
 public:
  Claimer(ClaimLoop::Options options, ChiefClient& chief, Clock& clock)
      : ClaimLoop(std::move(options), chief, clock) {
    Begin();
  }
  ~Claimer() override { End(); }

  bool CanStartNow() override {
    absl::MutexLock lock(&mu_);
    return CanDecide();
  }

  absl::StatusOr<std::optional<int64_t>> Start() override {
    absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(this, &Claimer::CanDecide));
    RETURN_IF_ERROR(Fault());
    if (no_more()) return std::nullopt;
    return steps_.TryStart();
  }

  std::vector<int64_t> Upcoming() override {
    absl::MutexLock lock(&mu_);
    return steps_.Upcoming(kMaxUpcoming);
  }

  void Complete() override {
    absl::MutexLock lock(&mu_);
    steps_.Complete();
  }

  void Stop() override { StopLoop(); }

  int64_t completed_steps() const override {
    absl::MutexLock lock(&mu_);
    return steps_.completed();
  }
  void Describe(wire::RegisterRequest& request) override {
    absl::MutexLock lock(&mu_);
    Registers();
    steps_.Tell(request);
  }

 private:
  bool CanDecide() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return IsOver() || (steps_.held() > 0 && !is_finishing());
  }
  // The loop can do nothing but wait for steps.
  bool MayWait() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return steps_.held() == 0 && IsAllReported();
  }
  bool IsAllReported() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return steps_.completed() == steps_.started();
  }
  // The loop is about to need steps, or others may be waiting for the ones it
  // has completed.
  bool IsUrgent() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return (steps_.held() == 0 && !asked_in_vain_) ||
           (MayWait() && steps_.completed() > last_completed_);
  }

  void Ask(absl::Duration since_last, wire::ClaimStepsRequest& request) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const int64_t wanted = StepGrant::WantedSteps(
        steps_.completed() - last_completed_, since_last, report_interval());
    last_completed_ = steps_.completed();
    asked_in_vain_ = true;
    request.set_want(std::max<int64_t>(0, wanted - steps_.held()));
    steps_.Tell(request);
  }

  void Take(const wire::ClaimStepsResponse& response) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const bool is_awaited = steps_.Take(response);
    asked_in_vain_ = steps_.held() == 0 && !is_awaited;
    if (MayWait() && !response.awaited_task().empty()) {
      LOG_EVERY(INFO, kGrantLogInterval)
          << "waiting for the steps of "
          << absl::StrJoin(response.awaited_task(), ", ");
    }
  }

  GrantedSteps steps_ ABSL_GUARDED_BY(mu_);
  // The last call gave nothing, and the chief does not wait for the next one:
  // it is made after a whole interval.
  bool asked_in_vain_ ABSL_GUARDED_BY(mu_) = false;
  int64_t last_completed_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace

std::unique_ptr<ChiefStepSource> ChiefStepSource::Create(Options options,
                                                         ChiefClient& chief,
                                                         Clock& clock) {
  return std::make_unique<Claimer>(std::move(options), chief, clock);
}

}  // namespace parasol
