#include "tests/simulation/claims.h"

#include <algorithm>
#include <utility>

#include "tests/simulation/chief_process.h"
#include "tests/simulation/job_of.h"
#include "worker/step_grant.h"

namespace parasol::simulation {
namespace {

// As in worker/claim_loop.h, but that a worker asks less often: a schedule has
// fewer events.
constexpr absl::Duration kReportInterval = absl::Milliseconds(300);
constexpr absl::Duration kFinishingInterval = absl::Seconds(1);
constexpr int64_t kClaimWaitSeconds = 1;
constexpr absl::Duration kCallDeadline = absl::Seconds(5);

}  // namespace

void Claims::Begin() {
  begun_ = true;
  Look();
}

std::optional<int64_t> Claims::TryStart() {
  if (stopped_ || no_more_ || is_finishing_ || !failure_.ok()) {
    return std::nullopt;
  }
  const std::optional<int64_t> batch = steps_.TryStart();
  if (steps_.held() == 0) Look();
  return batch;
}

void Claims::Complete() {
  steps_.Complete();
  Look();
}

bool Claims::ShouldEnd() const {
  const bool is_reported = steps_.completed() == steps_.started();
  return !begun_ || stopped_ || !failure_.ok() || (no_more_ && is_reported);
}

bool Claims::MayWait() const {
  return steps_.held() == 0 && steps_.completed() == steps_.started();
}

bool Claims::IsUrgent() const {
  return (steps_.held() == 0 && !asked_in_vain_) ||
         (MayWait() && steps_.completed() > last_completed_);
}

void Claims::Look() {
  if (claiming_ || ShouldEnd()) return;
  const absl::Time next =
      last_call_ + (is_finishing_ ? kFinishingInterval : kReportInterval);
  const absl::Time now = world_.Now(worker_);
  if (IsUrgent() || now >= next) return Claim();
  if (std::exchange(alarm_set_, true)) return;
  world_.After(worker_, next - now, [this] {
    alarm_set_ = false;
    Look();
  });
}

void Claims::Claim() {
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

wire::ClaimStepsRequest Claims::NextRequest() {
  const absl::Time now = world_.Now(worker_);
  const Shape& shape = world_.schedule().shape;
  wire::ClaimStepsRequest request;
  *request.mutable_task() = worker_.task();
  request.set_train_examples(ExamplesOf(shape));
  for (const int64_t examples : ShardExamplesOf(shape)) {
    request.add_shard_examples(examples);
  }
  steps_.Tell(request);
  const int64_t wanted = StepGrant::WantedSteps(
      steps_.completed() - last_completed_, now - last_call_, kReportInterval);
  request.set_want(std::max<int64_t>(0, wanted - steps_.held()));
  if (MayWait()) request.mutable_wait()->set_seconds(kClaimWaitSeconds);
  last_completed_ = steps_.completed();
  asked_in_vain_ = true;
  last_call_ = now;
  return request;
}

void Claims::Hear(const absl::StatusOr<wire::ClaimStepsResponse>& response) {
  if (!response.ok()) {
    if (absl::IsInvalidArgument(response.status()) ||
        absl::IsFailedPrecondition(response.status())) {
      failure_ = response.status();
    }
    return;
  }
  world_.auditor().WorkerIsAnswered(worker_.incarnation());
  const bool is_awaited = steps_.Take(*response);
  asked_in_vain_ = steps_.held() == 0 && !is_awaited;
  is_finishing_ = response->phase() == wire::FINISHING;
  no_more_ = response->phase() == wire::COMPLETE ||
             (is_finishing_ && !world_.rules().workers_claim_at_the_end);
  if (response->phase() == wire::FAILED) {
    failure_ = absl::FailedPreconditionError("the job has failed");
  }
}

}  // namespace parasol::simulation
