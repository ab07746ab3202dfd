#ifndef PARASOL_CLUSTER_HOOK_TRAINING_HOOKS_H_
#define PARASOL_CLUSTER_HOOK_TRAINING_HOOKS_H_

#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "cluster/checkpoint/evaluation_log.h"
#include "cluster/hook/job_events.h"
#include "cluster/hook/training_hook.h"
#include "proto/chief.pb.h"

namespace parasol {

// The hooks of a process. Thread-safe: calls of hooks come one at a time, with
// the mutex held.
class TrainingHooks {
 public:
  explicit TrainingHooks(std::vector<std::unique_ptr<TrainingHook>> hooks)
      : is_empty_(hooks.empty()), hooks_(std::move(hooks)) {}
  // Makes the hooks that are linked into this program, and logs their names.
  explicit TrainingHooks(const TrainingHook::Task& task);

  bool is_empty() const { return is_empty_; }

  void OnStep(const TrainingHook::Step& step) ABSL_LOCKS_EXCLUDED(mu_);
  // Tells of epochs and checkpoints: as JobEvents::Observe().
  void Look(const wire::JobStatus& status, bool is_exact)
      ABSL_LOCKS_EXCLUDED(mu_);
  void OnEvaluation(const Evaluation& evaluation) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  const bool is_empty_;
  absl::Mutex mu_;
  const std::vector<std::unique_ptr<TrainingHook>> hooks_ ABSL_GUARDED_BY(mu_);
  JobEvents events_ ABSL_GUARDED_BY(mu_);
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_HOOK_TRAINING_HOOKS_H_
