#include "worker/mirrored/pushed_rows.h"

#include "base/status_macros.h"

namespace parasol {

// The answer is there long before the gradients are.
void PushedRows::Begin(GroupRun& run, int64_t step) {
  made_.reset();
  if (!pushes_.in_step()) return;
  const Collective::Done count = run.Count();
  run.collective().AllGather("", &nothing_,
                             [this, step, count](const absl::Status& result) {
                               if (result.ok()) {
                                 absl::MutexLock lock(&mu_);
                                 all_began_ = step;
                               }
                               count(result);
                             });
}

absl::Status PushedRows::Leave(GroupRun& run, int64_t step) {
  if (pushes_.in_step()) {
    RETURN_IF_ERROR(run.AwaitLocal([&] {
      absl::MutexLock lock(&mu_);
      return all_began_ == step;
    }));
  }
  return EndIfNotDone(run, pushes_.Send(step, run.group().replicas,
                                        [&] { return run.CheckMayGoOn(); }));
}

absl::Status PushedRows::Await(GroupRun& run, int64_t step) {
  // Once they were sent a step may still end within the finish limit.
  RETURN_IF_ERROR(EndIfNotDone(
      run, pushes_.AwaitAnswers([&] { return run.collective().status(); })));
  if (!pushes_.in_step()) return absl::OkStatus();
  made_ = Made{.step = step, .group = run.group().version};
  // All have their answers: nobody waits for them in a step that others have
  // made.
  std::vector<std::string> nothing;
  run.collective().AllGather("", &nothing, [](const absl::Status&) {});
  return run.collective().Await();
}

// The group goes on: it is this worker's pushes that can't.
absl::Status PushedRows::EndIfNotDone(GroupRun& run,
                                      const absl::Status& pushed) {
  if (!pushed.ok() && !absl::IsCancelled(pushed) &&
      run.collective().status().ok()) {
    state_.End(pushed);
  }
  return pushed;
}

}  // namespace parasol
