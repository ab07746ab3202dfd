#include "worker/training_report.h"

#include <iterator>
#include <utility>

namespace parasol {

void AddLosses(const std::vector<double>& losses, std::vector<double>& sums) {
  if (losses.size() > sums.size()) sums.resize(losses.size());
  for (size_t i = 0; i < losses.size(); ++i) sums[i] += losses[i];
}

namespace {

void AddSums(const TrainingReport& report, TrainingReport& total) {
  total.examples += report.examples;
  total.loss_sum += report.loss_sum;
  AddLosses(report.output_loss_sums, total.output_loss_sums);
  for (const auto& [epoch, sums] : report.epochs) {
    EpochSums& known = total.epochs[epoch];
    known.loss_sum += sums.loss_sum;
    known.examples += sums.examples;
    AddLosses(sums.output_loss_sums, known.output_loss_sums);
    known.told = 0;
  }
}

void TellEpochs(std::map<int64_t, EpochSums>& epochs,
                wire::HeartbeatRequest& request) {
  while (epochs.size() > kMaxToldEpochs) {
    const auto oldest = epochs.begin();
    const auto next = std::next(oldest);
    // Sums that the chief has not heard of count with the next epoch.
    if (oldest->second.told == 0) {
      next->second.loss_sum += oldest->second.loss_sum;
      next->second.examples += oldest->second.examples;
      AddLosses(oldest->second.output_loss_sums, next->second.output_loss_sums);
    }
    epochs.erase(oldest);
  }
  for (auto& [epoch, sums] : epochs) {
    wire::EpochLoss* loss = request.add_epoch_loss();
    loss->set_epoch(epoch);
    loss->set_loss_sum(sums.loss_sum);
    loss->set_examples(sums.examples);
    loss->mutable_output_loss_sum()->Assign(sums.output_loss_sums.begin(),
                                            sums.output_loss_sums.end());
    ++sums.told;
  }
  // The sums of the newest one grow.
  const auto newest = epochs.empty() ? epochs.end() : std::prev(epochs.end());
  for (auto it = epochs.begin(); it != newest;) {
    it = it->second.told > kRepeatedSums ? epochs.erase(it) : std::next(it);
  }
}

}  // namespace

void TrainingReporter::AddStep() {
  absl::MutexLock lock(&mu_);
  ++report_.steps;
}

void TrainingReporter::AddExamples(int64_t examples, double loss_sum,
                                   const std::vector<double>& output_loss_sums,
                                   std::optional<int64_t> epoch) {
  TrainingReport report;
  report.examples = examples;
  report.loss_sum = loss_sum;
  report.output_loss_sums = output_loss_sums;
  if (epoch) report.epochs[*epoch] = {loss_sum, examples, output_loss_sums};
  AddExamplesOf(report);
}

void TrainingReporter::AddExamplesOf(const TrainingReport& other) {
  absl::MutexLock lock(&mu_);
  AddSums(other, report_);
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
  AddSums(report, total);
  TellEpochs(total.epochs, request);
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
