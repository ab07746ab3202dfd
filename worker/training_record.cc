#include "worker/training_record.h"

#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"

namespace parasol {

void TrainingRecord::Charge(Counter& seconds, absl::Time start) {
  seconds.Add(absl::ToDoubleSeconds(clock_.Now() - start));
}

void TrainingRecord::ChargePass(absl::Time start) {
  Charge(metrics_.compute_seconds, start);
  reporter_.AddPass(start, clock_.Now());
}

absl::Status TrainingRecord::AddResult(const BatchResult& result,
                                       int64_t number) {
  metrics_.examples.Add(result.examples);
  metrics_.loss.Set(result.loss_sum / result.examples);
  std::optional<int64_t> epoch;
  if (points_.are_known()) epoch = points_.PartOf(number);
  reporter_.AddExamples(result.examples, result.loss_sum,
                        result.output_loss_sums, epoch);
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
