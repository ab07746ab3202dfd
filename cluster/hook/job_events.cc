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
    // Before training begins it is not set.
    seen_from_ =
        status.has_trained() ? status.seen_from() : status.global_step();
    return seen;
  }
  if (!status.checkpoint().empty() && status.checkpoint() != checkpoint_) {
    checkpoint_ = status.checkpoint();
    seen.checkpoint = {StepOfPath(checkpoint_), checkpoint_};
  }
  const int64_t steps = status.steps_per_epoch();
  if (steps == 0) return seen;
  if (is_exact) {
    wire::EpochEnd end;
    end.set_step(status.global_step());
    end.set_loss_sum(status.loss_sum());
    end.set_loss_examples(status.loss_examples());
    end.set_seen_from(seen_from_);
    const int64_t number = end.step() / steps;
    if (number > step_ / steps) EndEpoch(number, end, seen);
    return seen;
  }
  for (const wire::EpochEnd& end : status.epoch_end()) {
    if (!end.is_complete()) break;
    // Of parts of epochs there are points of curves alone.
    if (end.step() <= step_ || end.step() % steps != 0) continue;
    EndEpoch(end.step() / steps, end, seen);
  }
  return seen;
}

void JobEvents::EndEpoch(int64_t number, const wire::EpochEnd& end,
                         Seen& seen) {
  TrainingHook::Epoch& epoch = seen.epochs.emplace_back();
  epoch.number = number;
  epoch.step = end.step();
  const int64_t examples = end.loss_examples() - examples_;
  if (end.seen_from() == seen_from_ && examples > 0) {
    epoch.loss = (end.loss_sum() - loss_sum_) / static_cast<double>(examples);
  }
  step_ = end.step();
  loss_sum_ = end.loss_sum();
  examples_ = end.loss_examples();
  seen_from_ = end.seen_from();
}

}  // namespace parasol
