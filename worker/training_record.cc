#include "worker/training_record.h"

#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "cluster/hook/training_hooks.h"

namespace parasol {

namespace {

// A thread that wakes later than this after its time was kept from running.
constexpr absl::Duration kLateWake = absl::Milliseconds(5);

}  // namespace

TrainingRecord::Timed::Timed(TrainingRecord& record, StepPart part)
    : record_(record), part_(part), start_(record.clock_.Now()) {
  record_.reporter_.Begin(part, start_);
}

TrainingRecord::Timed::~Timed() {
  const absl::Time end = record_.clock_.Now();
  record_.reporter_.End(end);
  record_.SecondsOf(part_).Add(absl::ToDoubleSeconds(end - start_));
}

Counter& TrainingRecord::SecondsOf(StepPart part) {
  switch (part) {
    case StepPart::kInput:
      return metrics_.wait_input_seconds;
    case StepPart::kPull:
      return metrics_.wait_pull_seconds;
    case StepPart::kPush:
      return metrics_.wait_push_seconds;
    case StepPart::kWait:
      return metrics_.wait_steps_seconds;
    case StepPart::kCompute:
      break;
  }
  return metrics_.compute_seconds;
}

bool TrainingRecord::WaitFor(TrainingParameters::Pending& pending,
                             absl::Duration limit) {
  const absl::Time start = clock_.Now();
  const bool is_there = pending.WaitFor(limit);
  const absl::Duration late = clock_.Now() - start - limit;
  if (late > kLateWake) {
    metrics_.stood_still_seconds.Add(absl::ToDoubleSeconds(late));
    reporter_.AddStandstill(late);
  }
  return is_there;
}

absl::Status TrainingRecord::AddResult(const BatchResult& result,
                                       int64_t number) {
  metrics_.examples.Add(result.examples);
  metrics_.loss.Set(result.loss_sum / result.examples);
  std::optional<int64_t> epoch;
  if (points_.are_known()) epoch = points_.PartOf(number);
  reporter_.AddExamples(result.examples, result.loss_sum,
                        result.output_loss_sums, epoch);
  if (reporter_.hooks() != nullptr) {
    reporter_.hooks()->OnStep({.number = number,
                               .examples = result.examples,
                               .loss = result.loss_sum / result.examples});
  }
  return CheckLoss(result);
}

absl::Status TrainingRecord::CheckLoss(const BatchResult& result) const {
  if (std::isfinite(result.loss_sum) ||
      non_finite_loss_ == job::WorkerSettings::CONTINUE) {
    return absl::OkStatus();
  }
  return absl::OutOfRangeError(absl::StrCat(
      "the loss is ", result.loss_sum,
      ": lower the learning rate, or set worker.non_finite_loss: CONTINUE"));
}

void TrainingRecord::AddStep() {
  metrics_.steps.Add();
  reporter_.AddStep();
}

}  // namespace parasol
