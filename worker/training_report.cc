#include "worker/training_report.h"

#include <utility>

namespace parasol {

void TrainingReporter::AddStep() {
  absl::MutexLock lock(&mu_);
  ++report_.steps;
}

void TrainingReporter::AddExamples(int64_t examples, double loss_sum) {
  absl::MutexLock lock(&mu_);
  report_.examples += examples;
  report_.loss_sum += loss_sum;
}

TrainingReport TrainingReporter::Take() {
  const absl::Time now = clock_.Now();
  absl::MutexLock lock(&mu_);
  TrainingReport report = std::exchange(report_, {});
  report.elapsed = now - std::exchange(start_, now);
  return report;
}

}  // namespace parasol
