#include "worker/lone_record.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/log.h"
#include "base/log_fields.h"
#include "base/uri/uri_path.h"

namespace parasol {
namespace {

std::unique_ptr<TrainingJournal> OpenJournal(TrainingJournal::Options options) {
  absl::StatusOr<std::unique_ptr<TrainingJournal>> journal =
      TrainingJournal::Open(std::move(options));
  if (journal.ok()) return *std::move(journal);
  LOG(WARNING) << "training.jsonl: " << journal.status().message();
  return nullptr;
}

// What the log says of cached tables: nothing where there is none.
std::string DescribeUse(const DeviceTables::CacheUse& cache) {
  if (cache.rows == 0) return "";
  const int64_t hits = cache.rows - cache.misses;
  return absl::StrFormat(
      ", %.1f %% of the rows of cached tables were there",
      100.0 * static_cast<double>(hits) / static_cast<double>(cache.rows));
}

}  // namespace

LoneRecord::LoneRecord(const job::Job& job, TrainingJournal::Options options,
                       Clock& clock)
    : clock_(clock),
      journal_(OpenJournal(options)),
      progress_(job.summary(), journal_ == nullptr ? absl::ZeroDuration()
                                                   : journal_->elapsed()) {
  if (!job.tensorboard()) return;
  eval_events_.emplace(
      JoinedPath(options.checkpoint_directory, "tensorboard/eval"),
      EventFileName(), options.first_step + 1);
}

void LoneRecord::Note(const wire::JobStatus& status, bool is_end) {
  steps_per_epoch_ = status.steps_per_epoch();
  const absl::Time now = clock_.Now();
  auto observation = progress_.Observe(SampleOf(status), now, is_end);
  if (observation.epoch_line) LOG(INFO) << *observation.epoch_line;
  if (!observation.record || journal_ == nullptr) return;
  const absl::Status added = journal_->Add(*observation.record, now);
  if (!added.ok()) LOG(WARNING) << added.message();
}

void LoneRecord::AddWork(const TrainingReport& report,
                         const DeviceTables::CacheUse& cache) {
  since_line_.steps += report.steps;
  since_line_.examples += report.examples;
  since_line_.loss_sum += report.loss_sum;
  since_line_.elapsed += report.elapsed;
  since_line_.times.Add(report.times);
  cache_since_line_.rows += cache.rows;
  cache_since_line_.misses += cache.misses;
}

void LoneRecord::LogSteps(int64_t step, int64_t end_step, Gauge& wait_ratio) {
  const TrainingReport report = std::exchange(since_line_, {});
  const DeviceTables::CacheUse cache = std::exchange(cache_since_line_, {});
  if (report.steps == 0) return;
  ShowWaitRatio(report.times, wait_ratio);
  const double loss = report.loss_sum / static_cast<double>(std::max<int64_t>(
                                            report.examples, 1));
  const double speed = static_cast<double>(report.examples) /
                       absl::ToDoubleSeconds(report.elapsed);
  LogFields fields;
  fields.AddCount("step", step);
  if (end_step > 0) fields.AddCount("end_step", end_step);
  fields.AddNumber("loss", loss).AddNumber("examples_per_second", speed);
  LOG(INFO) << "step " << step
            << (end_step > 0 ? absl::StrCat(" of ", end_step) : "") << ", loss "
            << loss << ", " << speed << " examples/s" << DescribeUse(cache)
            << fields;
}

void LoneRecord::AddEvaluation(const Evaluation& evaluation,
                               const EventFile::Histograms& histograms) {
  if (!eval_events_) return;
  EventFile::Scalars scalars = evaluation.metrics;
  scalars.emplace_back("loss", evaluation.loss);
  const absl::Status added = eval_events_->Add(evaluation.global_step, scalars,
                                               histograms, clock_.Now());
  if (!added.ok()) LOG(ERROR) << added.message();
}

}  // namespace parasol
