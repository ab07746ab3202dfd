#include "worker/training_report.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "cluster/rpc/proto_duration.h"

namespace parasol {

void AddLosses(const std::vector<double>& losses, std::vector<double>& sums) {
  if (losses.size() > sums.size()) sums.resize(losses.size());
  for (size_t i = 0; i < losses.size(); ++i) sums[i] += losses[i];
}

namespace {

void AddSums(const TrainingReport& report, TrainingReport& total) {
  total.batches += report.batches;
  total.work += report.work;
  total.examples += report.examples;
  total.loss_sum += report.loss_sum;
  AddLosses(report.output_loss_sums, total.output_loss_sums);
  AddRecorded(report.recorded, total.recorded);
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

const char* NameOf(StepPart part) {
  switch (part) {
    case StepPart::kInput:
      return "input";
    case StepPart::kPull:
      return "pull";
    case StepPart::kPush:
      return "push";
    case StepPart::kWait:
      return "wait";
    case StepPart::kCompute:
      break;
  }
  return "compute";
}

void TellTotals(const TrainingReport& total, wire::HeartbeatRequest& request) {
  wire::WorkerTotals& totals = *request.mutable_totals();
  totals.set_steps(total.steps);
  totals.set_batches(total.batches);
  *totals.mutable_work() = ToProto(total.work);
  wire::StepTimes& times = *totals.mutable_times();
  *times.mutable_input() = ToProto(total.times.of(StepPart::kInput));
  *times.mutable_pull() = ToProto(total.times.of(StepPart::kPull));
  *times.mutable_compute() = ToProto(total.times.of(StepPart::kCompute));
  *times.mutable_push() = ToProto(total.times.of(StepPart::kPush));
  *times.mutable_wait() = ToProto(total.times.of(StepPart::kWait));
  *times.mutable_stood_still() = ToProto(total.times.stood_still);
}

}  // namespace

void StepTimes::Add(const StepTimes& other) {
  for (int i = 0; i < kStepParts; ++i) parts[i] += other.parts[i];
  stood_still += other.stood_still;
}

absl::Duration StepTimes::Work() const {
  return of(StepPart::kInput) + of(StepPart::kCompute) + stood_still;
}

std::optional<double> StepTimes::WaitRatio() const {
  absl::Duration all;
  for (const absl::Duration part : parts) all += part;
  if (all <= absl::ZeroDuration()) return std::nullopt;
  return std::max(0., 1 - absl::FDivDuration(Work(), all));
}

void ShowWaitRatio(const StepTimes& times, Gauge& gauge) {
  const std::optional<double> ratio = times.WaitRatio();
  if (ratio) gauge.Set(*ratio);
}

TrainingReporter::TrainingReporter(Clock& clock, TrainingHooks* hooks,
                                   TraceRecorder* trace, std::string track,
                                   int64_t first_step)
    : clock_(clock),
      hooks_(hooks),
      trace_(trace),
      track_(std::move(track)),
      steps_(first_step),
      start_(clock.Now()) {
  // The first step begins now.
  if (trace_ != nullptr && trace_->is_on()) step_since_ = start_;
}

void TrainingReporter::AddStep() {
  absl::MutexLock lock(&mu_);
  ++report_.steps;
  if (trace_ != nullptr && trace_->is_on()) {
    const absl::Time now = clock_.Now();
    Trace("step", step_since_, now);
    step_since_ = now;
    trace_->EndStep(now);
  } else {
    step_since_ = absl::InfinitePast();
  }
  ++steps_;
}

void TrainingReporter::Trace(const char* name, absl::Time begin,
                             absl::Time now) const {
  if (trace_ == nullptr || !trace_->is_on()) return;
  if (begin == absl::InfinitePast()) return;
  trace_->Add({.name = name,
               .track = track_,
               .begin = begin,
               .end = now,
               .step = steps_});
}

void TrainingReporter::AddExamples(int64_t examples, double loss_sum,
                                   const std::vector<double>& output_loss_sums,
                                   std::optional<int64_t> epoch) {
  TrainingReport report;
  report.batches = 1;
  report.examples = examples;
  report.loss_sum = loss_sum;
  report.output_loss_sums = output_loss_sums;
  if (epoch) report.epochs[*epoch] = {loss_sum, examples, output_loss_sums};
  AddWorkOf(report);
}

void TrainingReporter::AddRecorded(
    const std::vector<std::pair<std::string, double>>& values) {
  absl::MutexLock lock(&mu_);
  parasol::AddRecorded(values, report_.recorded);
}

void TrainingReporter::AddWorkOf(const TrainingReport& other) {
  absl::MutexLock lock(&mu_);
  AddSums(other, report_);
}

void TrainingReporter::Begin(StepPart part, absl::Time now) {
  absl::MutexLock lock(&mu_);
  part_ = part;
  part_since_ = now;
  part_began_ = now;
}

void TrainingReporter::End(absl::Time now) {
  absl::MutexLock lock(&mu_);
  EndPart(now);
}

void TrainingReporter::EndPart(absl::Time now) {
  Charge(now);
  if (part_) Trace(NameOf(*part_), part_began_, now);
  part_.reset();
}

std::optional<StepPart> TrainingReporter::Switch(std::optional<StepPart> part) {
  const absl::Time now = clock_.Now();
  absl::MutexLock lock(&mu_);
  const std::optional<StepPart> before = part_;
  EndPart(now);
  part_ = part;
  part_since_ = now;
  part_began_ = now;
  return before;
}

std::optional<std::pair<StepPart, absl::Time>> TrainingReporter::Now() const {
  absl::MutexLock lock(&mu_);
  if (!part_) return std::nullopt;
  return std::make_pair(*part_, part_began_);
}

void TrainingReporter::AddStandstill(absl::Duration time) {
  absl::MutexLock lock(&mu_);
  report_.times.stood_still += time;
  report_.work += time;
}

void TrainingReporter::Charge(absl::Time now) {
  if (!part_) return;
  const absl::Duration time = now - std::exchange(part_since_, now);
  report_.times.of(*part_) += time;
  if (*part_ == StepPart::kInput || *part_ == StepPart::kCompute) {
    report_.work += time;
  }
}

TrainingReport TrainingReporter::Take() {
  const absl::Time now = clock_.Now();
  absl::MutexLock lock(&mu_);
  Charge(now);
  TrainingReport report = std::exchange(report_, {});
  report.elapsed = now - std::exchange(start_, now);
  return report;
}

void ReportTraining(const TrainingReport& report, TrainingReport& total,
                    wire::HeartbeatRequest& request) {
  AddSums(report, total);
  total.steps += report.steps;
  total.times.Add(report.times);
  TellEpochs(total.epochs, request);
  if (total.times.WaitRatio().has_value()) TellTotals(total, request);
  ToMessages(total.recorded, *request.mutable_recorded());
  request.set_loss_sum(total.loss_sum);
  request.set_loss_examples(total.examples);
  for (const double sum : total.output_loss_sums) {
    request.add_output_loss_sum(sum);
  }
  // A step may take longer than the time between two reports.
  total.elapsed = report.work == total.work ? report.elapsed
                                            : total.elapsed + report.elapsed;
  if (report.examples == 0 || total.elapsed <= absl::ZeroDuration()) return;
  const auto examples = static_cast<double>(report.examples);
  request.set_loss(report.loss_sum / examples);
  request.set_examples_per_second(examples /
                                  absl::ToDoubleSeconds(total.elapsed));
  total.elapsed = absl::ZeroDuration();
}

}  // namespace parasol
