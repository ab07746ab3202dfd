#include "worker/group/step_maker.h"

#include <optional>

#include "base/status_macros.h"

namespace parasol {

void StepMaker::BeginGroup(GroupRun& run) {
  gradients_.SetShare(run.group().replicas);
  sums_.BeginGroup(run);
}

absl::Status StepMaker::MakeStep(GroupRun& run) {
  const int64_t step = state_.version().step;
  rows_.Begin(run, step);
  RETURN_IF_ERROR(sums_.Add(run, step, [&] { return rows_.Leave(run, step); }));
  RETURN_IF_ERROR(run.collective().Await());
  RETURN_IF_ERROR(rows_.Await(run, step));
  absl::Status made = CheckFinite(step);
  if (made.ok()) made = Apply(run.group().version);
  // No other group mends it.
  if (!made.ok()) state_.steps().End(made);
  return made;
}

// A peer that was told to stop, too, may be gone before this worker knows that
// it has its answers. Without the step no checkpoint would have tables and
// variables of the same step.
void StepMaker::MakeLeftStep() {
  const std::optional<GroupRows::Made> left = rows_.made();
  if (!left || state_.version().step != left->step) return;
  if (!CheckFinite(left->step).ok()) return;
  const absl::Status made = Apply(left->group);
  if (!made.ok()) state_.steps().End(made);
}

absl::Status StepMaker::CheckFinite(int64_t step) {
  const bool may_be_any =
      state_.job().worker().non_finite_loss() == job::WorkerSettings::CONTINUE;
  return may_be_any ? absl::OkStatus() : sums_.CheckFinite(step);
}

absl::Status StepMaker::Apply(int64_t group) {
  return state_.MakeStep(group,
                         [this](ParameterStore& parameters) -> absl::Status {
                           RETURN_IF_ERROR(sums_.Apply(parameters));
                           return rows_.Apply(parameters);
                         });
}

}  // namespace parasol
