#include "chief/progress_writer.h"

#include <utility>

#include "base/log.h"
#include "cluster/rpc/proto_duration.h"

namespace parasol {
namespace {

constexpr absl::Duration kDropLogInterval = absl::Minutes(1);

// The time at which a training is this old, on a clock of its own.
absl::Time AtTime(absl::Duration trained) {
  return absl::UnixEpoch() + trained;
}

}  // namespace

ProgressWriter::ProgressWriter(Options options, Clock& clock)
    : options_(std::move(options)), clock_(clock), thread_([this] { Run(); }) {}

ProgressWriter::~ProgressWriter() {
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
  }
  thread_.join();
}

void ProgressWriter::Run() {
  bool is_last = false;
  while (!is_last) {
    {
      absl::MutexLock lock(&mu_);
      is_last =
          clock_.AwaitWithTimeout(mu_, absl::Condition(&stopping_), kInterval);
    }
    Look(is_last);
  }
}

void ProgressWriter::Look(bool is_last) {
  const wire::JobStatus status = options_.status();
  if (!status.has_trained()) return;
  const absl::Time now = clock_.Now();
  const bool is_end = status.phase() != wire::TRAINING;
  // A chief that ends may have lost the directory.
  if ((is_end || is_last) && !options_.check_owner().ok()) return;
  if (!progress_) Begin();
  if (is_end && !ended_) ended_ = now;
  const bool has_open = !WriteEpochs(status, is_last, ended_.value_or(now));
  if (is_end && !is_last && now < *ended_ + kLastReports) return;
  // Steps ascend.
  if (has_open) return;
  // What workers report late belongs to the time of the end.
  const auto record = progress_->Record(
      SampleOf(status), AtTime(FromProto(status.trained())), is_end || is_last);
  if (record) Write(*record, ended_.value_or(now));
}

bool ProgressWriter::WriteEpochs(const wire::JobStatus& status, bool is_last,
                                 absl::Time now) {
  const bool is_end = is_last || status.phase() > wire::TRAINING;
  for (int i = 0; i < status.epoch_end_size(); ++i) {
    const wire::EpochEnd& end = status.epoch_end(i);
    if (!end.is_complete() && !is_last) return false;
    TrainingSample sample = SampleOf(status);
    sample.global_step = end.step();
    sample.loss_sum = end.loss_sum();
    sample.examples = end.loss_examples();
    sample.output_loss_sums.assign(end.output_loss_sum().begin(),
                                   end.output_loss_sum().end());
    sample.learning_rate = end.learning_rate();
    sample.seen_from = end.seen_from();
    const bool is_newest = i + 1 == status.epoch_end_size();
    const absl::Duration trained = FromProto(end.trained());
    // Of parts of epochs there are points alone.
    const auto line =
        sample.steps_per_epoch > 0 && end.step() % sample.steps_per_epoch == 0
            ? progress_->EpochLine(sample, AtTime(trained),
                                   /*is_end=*/is_end && is_newest)
            : std::nullopt;
    if (line) LOG(INFO) << *line;
    const auto record =
        progress_->Record(sample, AtTime(trained), /*is_end=*/false);
    if (record) Write(*record, now - (FromProto(status.trained()) - trained));
  }
  return true;
}

void ProgressWriter::Begin() {
  OpenJournal();
  progress_.emplace(options_.summary, journal_ == nullptr
                                          ? absl::ZeroDuration()
                                          : journal_->elapsed());
  progress_->Begin({.global_step = options_.journal.first_step},
                   AtTime(absl::ZeroDuration()));
}

void ProgressWriter::OpenJournal() {
  if (journal_ != nullptr) return;
  absl::StatusOr<std::unique_ptr<TrainingJournal>> journal =
      TrainingJournal::Open(options_.journal);
  if (journal.ok()) {
    journal_ = *std::move(journal);
  } else {
    LOG_EVERY(WARNING, kDropLogInterval)
        << "training.jsonl: " << journal.status().message();
  }
}

void ProgressWriter::Write(const ProgressRecord& record, absl::Time now) {
  OpenJournal();
  if (journal_ == nullptr) return;
  const absl::Status added = journal_->Add(record, now);
  if (added.ok()) return;
  LOG_EVERY(WARNING, kDropLogInterval)
      << "step " << record.global_step
      << " is not in training.jsonl or in the event file: " << added.message();
}

}  // namespace parasol
