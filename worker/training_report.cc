#include "worker/training_report.h"

#include <utility>

namespace parasol {

void AddLosses(const std::vector<double>& losses, std::vector<double>& sums) {
  if (losses.size() > sums.size()) sums.resize(losses.size());
  for (size_t i = 0; i < losses.size(); ++i) sums[i] += losses[i];
}

void TrainingReporter::AddStep() {
  absl::MutexLock lock(&mu_);
  ++report_.steps;
}

void TrainingReporter::AddExamples(
    int64_t examples, double loss_sum,
    const std::vector<double>& output_loss_sums) {
  absl::MutexLock lock(&mu_);
  report_.examples += examples;
  report_.loss_sum += loss_sum;
  AddLosses(output_loss_sums, report_.output_loss_sums);
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

void ReportTraining(const TrainingReport& report, TrainingReport& total,
                    wire::HeartbeatRequest& request) {
  total.examples += report.examples;
  total.loss_sum += report.loss_sum;
  AddLosses(report.output_loss_sums, total.output_loss_sums);
  request.set_loss_sum(total.loss_sum);
  request.set_loss_examples(total.examples);
  for (const double sum : total.output_loss_sums) {
    request.add_output_loss_sum(sum);
  }
  if (report.examples == 0 || report.elapsed <= absl::ZeroDuration()) return;
  const auto examples = static_cast<double>(report.examples);
  request.set_loss(report.loss_sum / examples);
  request.set_examples_per_second(examples /
                                  absl::ToDoubleSeconds(report.elapsed));
}

}  // namespace parasol
