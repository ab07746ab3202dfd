#include "chief/kubeflow/progress_poster.h"

#include <utility>

#include "base/log.h"
#include "chief/kubeflow/trainer_status.h"

namespace parasol {

ProgressPoster::ProgressPoster(Options options, Clock& clock)
    : options_(std::move(options)), clock_(clock), thread_([this] { Run(); }) {}

ProgressPoster::~ProgressPoster() {
  cancelled_ = true;
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
  }
  thread_.join();
}

void ProgressPoster::Evaluated(const Evaluation& evaluation) {
  absl::MutexLock lock(&mu_);
  evaluation_ = evaluation;
}

void ProgressPoster::Run() {
  while (true) {
    Look();
    absl::MutexLock lock(&mu_);
    if (clock_.AwaitWithTimeout(mu_, absl::Condition(&stopping_), kLook)) break;
  }
  PostTheEnd();
}

wire::JobStatus ProgressPoster::Status() {
  wire::JobStatus status = options_.status();
  if (status.has_loss()) {
    loss_ = status.loss();
  } else if (loss_) {
    status.set_loss(*loss_);
  }
  return status;
}

void ProgressPoster::Look() {
  const wire::JobStatus status = Status();
  rate_.Observe(status.global_step(), clock_.Now());
  if (!schedule_.IsDue(status.phase(), clock_.Now())) return;
  Post(status, kTimeout, cancelled_);
}

void ProgressPoster::PostTheEnd() {
  const wire::JobStatus status = Status();
  if (!schedule_.IsDueAtTheEnd(status.phase())) return;
  const std::atomic<bool> never = false;
  Post(status, kLastTimeout, never);
}

void ProgressPoster::Post(const wire::JobStatus& status, absl::Duration timeout,
                          const std::atomic<bool>& cancelled) {
  const absl::Time begun = clock_.Now();
  const std::optional<absl::Duration> left =
      status.phase() == wire::TRAINING ? rate_.TimeTo(status.end_step())
                                       : std::nullopt;
  std::optional<Evaluation> evaluation;
  {
    absl::MutexLock lock(&mu_);
    evaluation = evaluation_;
  }
  const absl::Status result = options_.post(
      TrainerStatusBody(status, left, evaluation, begun), timeout, cancelled);
  // The end of the process is no fault of the server's.
  if (absl::IsCancelled(result)) return;
  const std::optional<std::string> line =
      schedule_.Took(status.phase(), begun, clock_.Now(), result);
  if (!line) return;
  if (result.ok()) {
    LOG(INFO) << *line;
  } else {
    LOG(WARNING) << *line;
  }
}

}  // namespace parasol
