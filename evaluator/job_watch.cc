#include "evaluator/job_watch.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace parasol {
namespace {

bool HasEnded(const wire::HeartbeatResponse& state) {
  return state.phase() == wire::COMPLETE || state.phase() == wire::FAILED;
}

}  // namespace

JobWatch::JobWatch(ChiefSession& session, Clock& clock)
    : session_(session),
      clock_(clock),
      was_complete_(session.state().phase() == wire::COMPLETE),
      thread_([this] { Run(); }) {}

JobWatch::~JobWatch() {
  Stop();
  thread_.join();
}

std::optional<absl::Status> JobWatch::end() const {
  absl::MutexLock lock(&mu_);
  if (stopped_) return absl::CancelledError("the evaluator was stopped");
  return end_;
}

bool JobWatch::stopped() const {
  absl::MutexLock lock(&mu_);
  return stopped_;
}

void JobWatch::Pause(absl::Duration duration) {
  absl::MutexLock lock(&mu_);
  const bool had_ended = end_.has_value();
  const auto has_news = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return stopped_ || end_.has_value() != had_ended;
  };
  clock_.AwaitWithTimeout(mu_, absl::Condition(&has_news), duration);
}

void JobWatch::Stop() {
  {
    absl::MutexLock lock(&mu_);
    stopped_ = true;
  }
  session_.Stop();
}

void JobWatch::Run() {
  // A job takes as long as it takes; a chief that is lost ends the wait.
  absl::Status end = session_.Await(HasEnded, absl::InfiniteDuration());
  const wire::HeartbeatResponse state = session_.state();
  if (end.ok() && state.phase() == wire::FAILED) {
    end = absl::FailedPreconditionError(
        absl::StrCat("the job has failed: ", state.failure()));
  }
  {
    absl::MutexLock lock(&mu_);
    end_ = std::move(end);
  }
  session_.Leave(/*completed_steps=*/0);
}

}  // namespace parasol
