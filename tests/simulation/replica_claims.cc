#include "tests/simulation/replica_claims.h"

#include <algorithm>
#include <utility>

#include "tests/simulation/chief_process.h"
#include "tests/simulation/job_of.h"

namespace parasol::simulation {
namespace {

// As in worker/claim_loop.h, but that a worker asks less often.
constexpr absl::Duration kReportInterval = absl::Milliseconds(300);
constexpr absl::Duration kFinishingInterval = absl::Seconds(1);
constexpr int64_t kClaimWaitSeconds = 1;
constexpr absl::Duration kCallDeadline = absl::Seconds(5);

}  // namespace

void ReplicaClaims::Complete(int64_t steps) {
  share_.completed_steps = std::max(share_.completed_steps, steps);
  Look();
}

void ReplicaClaims::Look() {
  if (claiming_ || stopped_ || no_more_ || !failure_.ok()) return;
  const bool is_urgent = share_.end_step > 0 && !HasStepsLeft() &&
                         share_.completed_steps > reported_;
  const absl::Time next =
      last_call_ + (is_finishing_ ? kFinishingInterval : kReportInterval);
  const absl::Time now = world_.Now(worker_);
  if (is_urgent || now >= next) return Claim();
  if (std::exchange(alarm_set_, true)) return;
  world_.After(worker_, next - now, [this] {
    alarm_set_ = false;
    Look();
  });
}

void ReplicaClaims::Claim() {
  claiming_ = true;
  world_.Call<ChiefProcess, wire::ClaimStepsResponse>(
      worker_, {"chief", 0}, kCallDeadline,
      [request = NextRequest()](
          ChiefProcess& chief,
          const World::Done<wire::ClaimStepsResponse>& done) {
        chief.ClaimSteps(request, done);
      },
      [this](const absl::StatusOr<wire::ClaimStepsResponse>& response) {
        claiming_ = false;
        Hear(response);
        Look();
        on_news_();
      });
}

wire::ClaimStepsRequest ReplicaClaims::NextRequest() {
  const Shape& shape = world_.schedule().shape;
  wire::ClaimStepsRequest request;
  *request.mutable_task() = worker_.task();
  request.set_train_examples(ExamplesOf(shape));
  for (const int64_t examples : ShardExamplesOf(shape)) {
    request.add_shard_examples(examples);
  }
  request.set_completed_steps(share_.completed_steps);
  request.set_assignment_version(share_.version);
  request.set_pushed_steps(pushed_);
  if (share_.replicas.empty() || !HasStepsLeft()) {
    request.mutable_wait()->set_seconds(kClaimWaitSeconds);
  }
  reported_ = share_.completed_steps;
  last_call_ = world_.Now(worker_);
  return request;
}

void ReplicaClaims::Hear(
    const absl::StatusOr<wire::ClaimStepsResponse>& response) {
  if (!response.ok()) {
    if (absl::IsInvalidArgument(response.status()) ||
        absl::IsFailedPrecondition(response.status())) {
      failure_ = response.status();
    }
    return;
  }
  share_.version = response->assignment_version();
  share_.replicas.assign(response->replica().begin(),
                         response->replica().end());
  share_.end_step = response->end_step();
  share_.completed_steps =
      std::max(share_.completed_steps, response->global_step());
  is_finishing_ = response->phase() == wire::FINISHING;
  no_more_ = response->phase() == wire::COMPLETE ||
             (is_finishing_ && !world_.rules().workers_claim_at_the_end);
  if (response->phase() == wire::FAILED) {
    failure_ = absl::FailedPreconditionError("the job has failed");
  }
}

}  // namespace parasol::simulation
