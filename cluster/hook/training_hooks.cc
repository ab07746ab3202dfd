#include "cluster/hook/training_hooks.h"

#include "absl/strings/str_join.h"
#include "base/log.h"

namespace parasol {

TrainingHooks::TrainingHooks(const TrainingHook::Task& task)
    : TrainingHooks(MakeTrainingHooks(task)) {
  if (is_empty_) return;
  LOG(INFO) << "hooks: " << absl::StrJoin(TrainingHookNames(), ", ");
}

void TrainingHooks::OnStep(const TrainingHook::Step& step) {
  if (is_empty_) return;
  absl::MutexLock lock(&mu_);
  for (const auto& hook : hooks_) hook->OnStep(step);
}

void TrainingHooks::Look(const wire::JobStatus& status, bool is_exact) {
  if (is_empty_) return;
  absl::MutexLock lock(&mu_);
  const JobEvents::Seen seen = events_.Observe(status, is_exact);
  for (const auto& hook : hooks_) {
    for (const TrainingHook::Epoch& epoch : seen.epochs) hook->OnEpoch(epoch);
    if (seen.checkpoint) hook->OnCheckpoint(*seen.checkpoint);
  }
}

void TrainingHooks::OnEvaluation(const Evaluation& evaluation) {
  if (is_empty_) return;
  const TrainingHook::Evaluation told = {.step = evaluation.global_step,
                                         .loss = evaluation.loss,
                                         .metrics = evaluation.metrics,
                                         .checkpoint = evaluation.checkpoint,
                                         .is_last = evaluation.final};
  absl::MutexLock lock(&mu_);
  for (const auto& hook : hooks_) hook->OnEvaluation(told);
}

}  // namespace parasol
