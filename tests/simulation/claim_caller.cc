#include "tests/simulation/claim_caller.h"

#include "tests/simulation/chief_process.h"
#include "tests/simulation/job_of.h"

namespace parasol::simulation {
namespace {

// As in worker/step/claim_loop.h, but that a worker asks less often: a schedule
// has fewer events.
constexpr absl::Duration kReportInterval = absl::Milliseconds(300);
constexpr absl::Duration kFinishingInterval = absl::Seconds(1);
constexpr int64_t kClaimWaitSeconds = 1;
constexpr absl::Duration kClaimDeadline = absl::Seconds(5);

}  // namespace

absl::Duration ClaimCaller::report_interval() { return kReportInterval; }

void ClaimCaller::Begin() {
  begun_ = true;
  Look();
}

void ClaimCaller::Look() {
  const bool has_ended = stopped_ || !failure_.ok();
  if (claiming_ || !begun_ || has_ended || (no_more_ && IsAllReported())) {
    return;
  }
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

void ClaimCaller::Claim() {
  claiming_ = true;
  world_.Call<ChiefProcess, wire::ClaimStepsResponse>(
      worker_, {"chief", 0}, kClaimDeadline,
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

wire::ClaimStepsRequest ClaimCaller::NextRequest() {
  const absl::Time now = world_.Now(worker_);
  const Shape& shape = world_.schedule().shape;
  wire::ClaimStepsRequest request;
  *request.mutable_task() = worker_.task();
  if (shape.growth == 0) {
    request.set_train_examples(ExamplesOf(shape));
    for (const int64_t examples : ShardExamplesOf(shape)) {
      request.add_shard_examples(examples);
    }
  }
  if (MayWait()) request.mutable_wait()->set_seconds(kClaimWaitSeconds);
  Ask(now - last_call_, request);
  last_call_ = now;
  return request;
}

void ClaimCaller::Hear(
    const absl::StatusOr<wire::ClaimStepsResponse>& response) {
  if (!response.ok()) {
    if (absl::IsAborted(response.status())) {
      world_.DropConnection(worker_, {"chief", 0});
    }
    if (absl::IsInvalidArgument(response.status()) ||
        absl::IsFailedPrecondition(response.status())) {
      failure_ = response.status();
    }
    return;
  }
  world_.auditor().WorkerIsAnswered(worker_.incarnation());
  is_finishing_ = response->phase() == wire::FINISHING;
  no_more_ = response->phase() == wire::COMPLETE ||
             (is_finishing_ && !world_.rules().workers_claim_at_the_end);
  if (response->phase() == wire::FAILED) {
    failure_ = absl::FailedPreconditionError("the job has failed");
  }
  Take(*response);
}

}  // namespace parasol::simulation
