#include "worker/step/replica_source.h"

#include <algorithm>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "worker/step/claim_loop.h"

namespace parasol {
namespace {

constexpr absl::Duration kAssignmentLogInterval = absl::Seconds(10);

class Asker : public ChiefReplicaSource, private ClaimLoop {
 public:
  Asker(ChiefReplicaSource::Options options, ChiefClient& chief, Clock& clock)
      : ClaimLoop(options, chief, clock),
        on_answer_(std::move(options.on_answer)),
        completed_steps_(std::move(options.completed_steps)),
        broken_assignment_(std::move(options.broken_assignment)) {
    Begin();
  }
  ~Asker() override { End(); }

  absl::StatusOr<std::optional<ReplicaShare>> Await() override {
    absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(this, &Asker::CanDecide));
    RETURN_IF_ERROR(Fault());
    if (no_more()) return std::nullopt;
    return share_;
  }

  absl::StatusOr<ReplicaShare> Now() override {
    absl::MutexLock lock(&mu_);
    RETURN_IF_ERROR(Fault());
    ReplicaShare share = share_;
    share.is_over = no_more();
    return share;
  }

  void Complete(int64_t steps) override {
    absl::MutexLock lock(&mu_);
    Note(steps);
  }

  void Pushed(int64_t steps) override {
    absl::MutexLock lock(&mu_);
    pushed_ = steps;
  }

  void Stop() override { StopLoop(); }

  int64_t completed_steps() const override {
    absl::MutexLock lock(&mu_);
    return completed_steps_ != nullptr ? completed_steps_()
                                       : share_.completed_steps;
  }
  void Describe(wire::RegisterRequest& request) override {
    request.set_completed_steps(completed_steps());
  }

 private:
  // Notes a number of steps that the cluster is said to have completed. Where
  // workers have the variables, a number that only others had may be lost with
  // them.
  void Note(int64_t steps) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    share_.completed_steps = completed_steps_ != nullptr
                                 ? completed_steps_()
                                 : std::max(share_.completed_steps, steps);
  }
  bool HasStepsLeft() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return share_.completed_steps < share_.end_step;
  }
  // A chief that writes the last checkpoint may wait for steps that were lost
  // with the workers that had made them.
  bool MayCompute() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return !is_finishing() || completed_steps_ != nullptr;
  }
  bool CanDecide() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return IsOver() ||
           (!share_.replicas.empty() && HasStepsLeft() && MayCompute());
  }
  bool MayWait() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return share_.replicas.empty() || !HasStepsLeft();
  }
  // All workers together make the steps.
  bool IsAllReported() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return true;
  }
  // The last step is done.
  bool IsUrgent() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return share_.end_step > 0 && !HasStepsLeft() &&
           share_.completed_steps > reported_;
  }

  void Ask(absl::Duration, wire::ClaimStepsRequest& request) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    Note(0);
    reported_ = share_.completed_steps;
    request.set_completed_steps(share_.completed_steps);
    request.set_assignment_version(share_.version);
    request.set_pushed_steps(pushed_);
    request.set_end_step(share_.end_step);
    request.set_broken_assignment(broken_assignment_());
  }

  void Take(const wire::ClaimStepsResponse& response) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    on_answer_(response);
    share_.version = response.assignment_version();
    share_.replicas.assign(response.replica().begin(),
                           response.replica().end());
    share_.end_step = response.end_step();
    share_.awaited.assign(response.awaited_task().begin(),
                          response.awaited_task().end());
    Note(response.global_step());
    if (share_.replicas.empty() && response.phase() == wire::TRAINING) {
      LOG_EVERY(INFO, kAssignmentLogInterval)
          << "synchronous: other workers compute all replicas; waiting for one "
             "of them to leave";
    }
  }

  const std::function<void(const wire::ClaimStepsResponse&)> on_answer_;
  const std::function<int64_t()> completed_steps_;
  const std::function<int64_t()> broken_assignment_;
  ReplicaShare share_ ABSL_GUARDED_BY(mu_);
  int64_t reported_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t pushed_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace

std::unique_ptr<ChiefReplicaSource> ChiefReplicaSource::Create(
    Options options, ChiefClient& chief, Clock& clock) {
  return std::make_unique<Asker>(std::move(options), chief, clock);
}

}  // namespace parasol
