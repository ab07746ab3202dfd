#include "cluster/hook/job_events.h"

#include "absl/strings/string_view.h"
#include "storage/checkpoint_name.h"

namespace parasol {
namespace {

int64_t StepOfPath(absl::string_view path) {
  const size_t slash = path.rfind('/');
  return StepOfName(slash == absl::string_view::npos ? path
                                                     : path.substr(slash + 1))
      .value_or(0);
}

}  // namespace

JobEvents::Seen JobEvents::Observe(const wire::JobStatus& status,
                                   bool is_exact) {
  Seen seen;
  if (!has_begun_) {
    has_begun_ = true;
    checkpoint_ = status.checkpoint();
    step_ = status.global_step();
    loss_sum_ = status.loss_sum();
    examples_ = status.loss_examples();
    return seen;
  }
  if (!status.checkpoint().empty() && status.checkpoint() != checkpoint_) {
    checkpoint_ = status.checkpoint();
    seen.checkpoint = {StepOfPath(checkpoint_), checkpoint_};
  }
  const int64_t steps = status.steps_per_epoch();
  if (steps == 0) return seen;
  if (is_exact) {
    const int64_t step = status.global_step();
    if (step / steps > step_ / steps) {
      EndEpoch(step / steps, step, status.loss_sum(), status.loss_examples(),
               seen);
    }
    return seen;
  }
  for (const wire::EpochEnd& end : status.epoch_end()) {
    if (!end.is_complete()) break;
    // Of parts of epochs there are points of curves alone.
    if (end.step() <= step_ || end.step() % steps != 0) continue;
    EndEpoch(end.step() / steps, end.step(), end.loss_sum(),
             end.loss_examples(), seen);
  }
  return seen;
}

void JobEvents::EndEpoch(int64_t number, int64_t step, double loss_sum,
                         int64_t examples, Seen& seen) {
  TrainingHook::Epoch& epoch = seen.epochs.emplace_back();
  epoch.number = number;
  epoch.step = step;
  if (examples > examples_) {
    epoch.loss =
        (loss_sum - loss_sum_) / static_cast<double>(examples - examples_);
  }
  step_ = step;
  loss_sum_ = loss_sum;
  examples_ = examples;
}

}  // namespace parasol
