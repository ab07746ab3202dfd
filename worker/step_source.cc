#include "worker/step_source.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <utility>

#include "absl/strings/str_join.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "worker/claim_loop.h"
#include "worker/step_grant.h"

namespace parasol {
namespace {

constexpr absl::Duration kLogInterval = absl::Seconds(10);
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
    if (no_more() || !lease_.TryStart()) return std::nullopt;
    const int64_t batch = batches_.front();
    batches_.pop_front();
    return batch;
  }

  std::vector<int64_t> Upcoming() override {
    absl::MutexLock lock(&mu_);
    const size_t upcoming = std::min(batches_.size(), kMaxUpcoming);
    return {batches_.begin(), batches_.begin() + upcoming};
  }

  void Complete() override {
    absl::MutexLock lock(&mu_);
    lease_.Complete();
  }

  void Stop() override { StopLoop(); }

  int64_t completed_steps() const override {
    absl::MutexLock lock(&mu_);
    return lease_.completed();
  }

 private:
  bool CanDecide() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return IsOver() || (lease_.held() > 0 && !is_finishing());
  }
  // The loop can do nothing but wait for steps.
  bool MayWait() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return lease_.held() == 0 && IsAllReported();
  }
  bool IsAllReported() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return lease_.completed() == lease_.started();
  }
  // The loop is about to need steps, or others may be waiting for the ones it
  // has completed.
  bool IsUrgent() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return (lease_.held() == 0 && !asked_in_vain_) ||
           (MayWait() && lease_.completed() > last_completed_);
  }

  void Ask(absl::Duration since_last, wire::ClaimStepsRequest& request) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const int64_t wanted = StepGrant::WantedSteps(
        lease_.completed() - last_completed_, since_last, report_interval());
    last_completed_ = lease_.completed();
    asked_in_vain_ = true;
    request.set_completed_steps(lease_.completed());
    request.set_want(wanted > lease_.held() ? wanted - lease_.held() : 0);
    request.set_granted_steps(lease_.granted());
  }

  void Take(const wire::ClaimStepsResponse& response) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    TakeBatches(response);
    // A step without a batch is none.
    const auto listed = static_cast<int64_t>(batches_.size());
    lease_.Grant(std::min(response.granted_steps(), lease_.started() + listed));
    asked_in_vain_ = lease_.held() == 0;
    if (MayWait() && !response.awaited_task().empty()) {
      LOG_EVERY(INFO, kLogInterval)
          << "bounded staleness: waiting for the steps of "
          << absl::StrJoin(response.awaited_task(), ", ");
    }
  }

  // The chief names the batches of all steps that it does not know to be
  // completed; the first of them may have been started here.
  void TakeBatches(const wire::ClaimStepsResponse& response)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    int64_t started = lease_.started() - response.steps_before_batches();
    batches_.clear();
    for (const wire::BatchRange& range : response.batch()) {
      for (int64_t i = 0; i < range.count(); ++i) {
        if (started-- <= 0) batches_.push_back(range.first() + i);
      }
    }
  }

  StepGrant lease_ ABSL_GUARDED_BY(mu_);
  // Batches of the next steps, granted ones first.
  std::deque<int64_t> batches_ ABSL_GUARDED_BY(mu_);
  // The last call gave nothing: wait a whole interval before the next one.
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
