#include "cluster/progress/training_progress.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace parasol {
namespace {

std::optional<double> MeanLoss(const TrainingSample& from,
                               const TrainingSample& to) {
  const int64_t examples = to.examples - from.examples;
  if (examples <= 0) return std::nullopt;
  return (to.loss_sum - from.loss_sum) / static_cast<double>(examples);
}

// Empty before the first report.
std::vector<double> MeanOutputLosses(const TrainingSample& from,
                                     const TrainingSample& to) {
  const int64_t examples = to.examples - from.examples;
  if (examples <= 0) return {};
  std::vector<double> losses = to.output_loss_sums;
  for (size_t i = 0; i < losses.size(); ++i) {
    const bool was_known = i < from.output_loss_sums.size();
    losses[i] = (losses[i] - (was_known ? from.output_loss_sums[i] : 0)) /
                static_cast<double>(examples);
  }
  return losses;
}

double Speed(const TrainingSample& from, const TrainingSample& to,
             absl::Duration elapsed) {
  const double seconds = absl::ToDoubleSeconds(elapsed);
  if (seconds <= 0 || to.examples <= from.examples) return 0;
  return static_cast<double>(to.examples - from.examples) / seconds;
}

// "2/5", or "3-4/5" if none was looked at in between.
std::string EpochNumbers(int64_t first, int64_t last, int64_t end_step,
                         int64_t steps_per_epoch) {
  std::string text = first == last ? absl::StrCat(" ", last)
                                   : absl::StrCat("s ", first, "-", last);
  if (end_step > 0) {
    absl::StrAppend(&text, "/",
                    (end_step + steps_per_epoch - 1) / steps_per_epoch);
  }
  return text;
}

}  // namespace

TrainingSample SampleOf(const wire::JobStatus& status) {
  TrainingSample sample = {
      .global_step = status.global_step(),
      .end_step = status.end_step(),
      .steps_per_epoch = status.steps_per_epoch(),
      .loss_sum = status.loss_sum(),
      .output_loss_sums = {status.output_loss_sum().begin(),
                           status.output_loss_sum().end()},
      .examples = status.loss_examples(),
      .learning_rate = status.learning_rate(),
      .seen_from = status.seen_from(),
      .recorded = RecordedOf(status.recorded())};
  if (status.has_staleness()) sample.staleness = status.staleness();
  return sample;
}

TrainingProgress::TrainingProgress(const job::SummaryPolicy& policy,
                                   absl::Duration elapsed)
    : every_steps_(policy.every_steps()),
      every_(policy.every_seconds() > 0 ? absl::Seconds(policy.every_seconds())
                                        : absl::InfiniteDuration()),
      elapsed_(elapsed) {}

bool TrainingProgress::HasRecord(int64_t global_step, int64_t steps_per_epoch,
                                 absl::Time now) const {
  if (global_step <= record_->sample.global_step) return false;
  const absl::Duration interval = now - record_->time;
  if (interval >= every_) return true;
  return CurvePoints(steps_per_epoch, every_steps_).IsPoint(global_step) &&
         (records_ < kMaxDense || interval >= kShortestInterval);
}

bool TrainingProgress::IsDue(int64_t global_step, int64_t steps_per_epoch,
                             absl::Time now) const {
  if (!record_) return true;
  const bool ends_epoch = steps_per_epoch > 0 &&
                          global_step % steps_per_epoch == 0 &&
                          global_step > epoch_->sample.global_step;
  return HasRecord(global_step, steps_per_epoch, now) ||
         (ends_epoch && HasLine(global_step / steps_per_epoch, now));
}

bool TrainingProgress::HasLine(int64_t last, absl::Time now) const {
  return last <= kOwnLines || now - epoch_->time >= kShortestEpoch;
}

TrainingProgress::Observation TrainingProgress::Observe(
    const TrainingSample& sample, absl::Time now, bool is_end) {
  Observation observation;
  if (!record_ || sample.global_step < record_->sample.global_step) {
    Begin(sample, now);
    return observation;
  }
  observation.epoch_line = EpochLine(sample, now, /*is_end=*/true);
  observation.record = Record(sample, now, is_end);
  return observation;
}

void TrainingProgress::Begin(const TrainingSample& sample, absl::Time now) {
  record_ = epoch_ = Mark{now, sample};
}

std::optional<ProgressRecord> TrainingProgress::Record(
    const TrainingSample& sample, absl::Time now, bool is_end) {
  const bool has_steps = sample.global_step > record_->sample.global_step;
  const bool is_due =
      is_end || HasRecord(sample.global_step, sample.steps_per_epoch, now);
  if (!has_steps || !is_due) return std::nullopt;
  return RecordOf(sample, now);
}

std::optional<LogLine> TrainingProgress::EpochLine(const TrainingSample& sample,
                                                   absl::Time now,
                                                   bool is_end) {
  const int64_t steps = sample.steps_per_epoch;
  if (steps <= 0) return std::nullopt;
  const TrainingSample& from = epoch_->sample;
  const int64_t first = from.global_step / steps + 1;
  const int64_t last = sample.global_step / steps;
  if (last < first || (!is_end && !HasLine(last, now))) return std::nullopt;
  std::string line =
      absl::StrCat("Epoch", EpochNumbers(first, last, sample.end_step, steps));
  LogFields fields;
  fields.AddCount("step", sample.global_step).AddCount("epoch", last);
  const char* separator = ": ";
  if (const auto loss = MeanLoss(from, sample)) {
    absl::StrAppendFormat(&line, ": loss %.4f", *loss);
    fields.AddNumber("loss", *loss);
    separator = ", ";
  }
  absl::StrAppendFormat(&line, "%s%.1f s", separator,
                        absl::ToDoubleSeconds(now - epoch_->time));
  const double speed = Speed(from, sample, now - epoch_->time);
  if (speed > 0) {
    absl::StrAppendFormat(&line, ", %.0f examples/s", speed);
    fields.AddNumber("examples_per_second", speed);
  }
  const int64_t seen_from = std::max(from.global_step, sample.seen_from);
  if (seen_from % steps != 0 || seen_from > from.global_step) {
    absl::StrAppend(&line, ", from step ", seen_from);
  }
  fields.AddNumber("seconds", absl::ToDoubleSeconds(now - epoch_->time));
  epoch_ = Mark{now, sample};
  return LogLine{std::move(line), fields};
}

ProgressRecord TrainingProgress::RecordOf(const TrainingSample& sample,
                                          absl::Time now) {
  const absl::Duration elapsed = now - record_->time;
  elapsed_ += elapsed;
  ProgressRecord record = {
      .global_step = sample.global_step,
      .from_step = std::max(record_->sample.global_step, sample.seen_from),
      .loss = MeanLoss(record_->sample, sample),
      .output_losses = MeanOutputLosses(record_->sample, sample),
      .learning_rate = sample.learning_rate,
      .examples_per_second = Speed(record_->sample, sample, elapsed),
      .staleness = sample.staleness,
      .values =
          MeansOf(RecordedSince(record_->sample.recorded, sample.recorded)),
      .elapsed = elapsed_};
  if (sample.steps_per_epoch > 0) {
    record.epoch = static_cast<double>(sample.global_step) /
                   static_cast<double>(sample.steps_per_epoch);
  }
  record_ = Mark{now, sample};
  ++records_;
  return record;
}

}  // namespace parasol
