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

void TrainingReporter::AddPass(absl::Time start, absl::Time end) {
  absl::MutexLock lock(&mu_);
  if (passes_start_ == absl::InfinitePast()) passes_start_ = start;
  computed_ += end - start;
  passes_end_ = end;
}

TrainingReport TrainingReporter::Take() {
  const absl::Time now = clock_.Now();
  absl::MutexLock lock(&mu_);
  TrainingReport report = std::exchange(report_, {});
  report.elapsed = now - std::exchange(start_, now);
  if (passes_end_ > passes_start_) {
    const absl::Duration span = passes_end_ - passes_start_;
    report.wait_ratio =
        1 - absl::FDivDuration(std::exchange(computed_, {}), span);
    passes_start_ = passes_end_;
  }
  return report;
}

}  // namespace parasol
