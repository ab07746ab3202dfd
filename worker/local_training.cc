#include "worker/local_training.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/log.h"
#include "base/log_fields.h"
#include "base/status_macros.h"
#include "cluster/checkpoint/checkpoint_failure.h"
#include "cluster/checkpoint/disk_patience.h"
#include "cluster/checkpoint/store_checkpoint.h"
#include "cluster/checkpoint/warm_start.h"
#include "cluster/job/training_end.h"
#include "storage/shard_writer.h"
#include "worker/training_report.h"

namespace parasol {
namespace {

constexpr char kShardFile[] = "worker-0.sst";

// What the log says of cached tables: nothing where there is none.
std::string DescribeUse(const DeviceTables::CacheUse& cache) {
  if (cache.rows == 0) return "";
  const int64_t hits = cache.rows - cache.misses;
  return absl::StrFormat(
      ", %.1f %% of the rows of cached tables were there",
      100.0 * static_cast<double>(hits) / static_cast<double>(cache.rows));
}

}  // namespace

LocalTraining::LocalTraining(Options options, Clock& clock,
                             MetricsRegistry& metrics)
    : options_(std::move(options)), clock_(clock), metrics_(metrics) {}

void LocalTraining::Stop() {
  absl::MutexLock lock(&mu_);
  stopping_ = true;
}

bool LocalTraining::stopping() const {
  absl::MutexLock lock(&mu_);
  return stopping_;
}

absl::Status LocalTraining::Run() {
  const auto set_phase = [this](wire::JobPhase phase) {
    status().Update([phase](wire::JobStatus& now) { now.set_phase(phase); });
  };
  set_phase(wire::LOADING);
  ASSIGN_OR_RETURN(trainer_,
                   LocalTrainer::Open(options_.trainer, clock_, metrics_));
  ASSIGN_OR_RETURN(contents_,
                   ContentsOf(options_.trainer.graph.variables, job()));
  RETURN_IF_ERROR(Resume());
  NoteResumed();
  if (!run_.is_complete) {
    set_phase(wire::TRAINING);
    RETURN_IF_ERROR(Train());
  }
  if (stopping()) {
    return absl::CancelledError(absl::StrCat("stopped at step ", step_));
  }
  set_phase(wire::FINISHING);
  RETURN_IF_ERROR(Evaluate(/*final=*/true));
  set_phase(wire::COMPLETE);
  return absl::OkStatus();
}

absl::Status LocalTraining::Load() {
  return trainer_->Load(run_.checkpoint ? store_->PathOf(step_) : "",
                        decisions_->learning_rate());
}

absl::Status LocalTraining::Resume() {
  const auto tell = [this](absl::string_view trouble) {
    status().Update([trouble](wire::JobStatus& now) {
      now.set_trouble(std::string(trouble));
    });
  };
  DiskPatience patience({.full_limit = options_.checkpoint_timeout,
                         .cancelled = [this] { return stopping(); },
                         .on_trouble = tell},
                        clock_);
  while (true) {
    const absl::Status resumed = TryResume();
    if (resumed.ok()) break;
    if (absl::IsDataLoss(resumed) && run_.checkpoint &&
        damaged_.insert(run_.checkpoint->global_step()).second) {
      LOG(WARNING) << "passing over a damaged checkpoint: "
                   << resumed.message();
    } else {
      RETURN_IF_ERROR(patience.Failed(resumed));
    }
  }
  tell("");
  schedule_.emplace(
      job().checkpoint(),
      run_.checkpoint ? std::optional<int64_t>(step_) : std::nullopt,
      clock_.Now());
  job::CheckpointPolicy times;
  times.set_every_steps(job().evaluation().every_steps());
  times.set_every_seconds(job().evaluation().every_seconds());
  evaluation_times_.emplace(times, schedule_->newest_step(), clock_.Now());
  return absl::OkStatus();
}

absl::Status LocalTraining::TryResume() {
  const std::string& directory = job().checkpoint().directory();
  if (ownership_ == nullptr) {
    // The owner's lease is real time, whatever the training's clock.
    ASSIGN_OR_RETURN(
        ownership_,
        DirectoryOwnership::Take({.directory = directory,
                                  .job_name = job().name(),
                                  .cancelled = [this] { return stopping(); }},
                                 Clock::Real()));
  }
  ASSIGN_OR_RETURN(store_, CheckpointStore::OpenForWriting(directory));
  ASSIGN_OR_RETURN(run_, ResumeRun(*store_, job(), contents_, damaged_));
  if (!run_.checkpoint && job().has_warm_start()) {
    RETURN_IF_ERROR(
        WriteWarmStart({.run_id = run_.run_id,
                        .job = job(),
                        .variables = options_.trainer.graph.variables,
                        .contents = contents_,
                        .now = clock_.Now()},
                       *store_, [this] { return ownership_->Check(); }));
    ASSIGN_OR_RETURN(run_, ResumeRun(*store_, job(), contents_));
  }
  step_ = run_.checkpoint ? run_.checkpoint->global_step() : 0;
  RETURN_IF_ERROR(ReadDecisions());
  return Load();
}

absl::StatusOr<int64_t> LocalTraining::EndStep() {
  job::Job alone = job();
  alone.clear_parameter_server();
  std::vector<int64_t> shards;
  if (trainer_->composition().in_step) {
    alone.mutable_parameter_server()->mutable_synchronous()->set_total_replicas(
        trainer_->num_replicas());
    ASSIGN_OR_RETURN(shards,
                     trainer_->input().ShardSizes(trainer_->num_replicas()));
  }
  TrainingEnd end(alone);
  RETURN_IF_ERROR(
      end.ObserveExamples(trainer_->input().total_examples(), shards));
  steps_per_epoch_ = end.steps_per_epoch().value_or(0);
  return end.step().value_or(INT64_MAX);
}

absl::Status LocalTraining::Train() {
  ASSIGN_OR_RETURN(const int64_t end, EndStep());
  status().Update([&](wire::JobStatus& now) {
    now.set_end_step(end == INT64_MAX ? 0 : end);
    now.set_steps_per_epoch(steps_per_epoch_);
  });
  OpenJournal();
  // So that there always is one to come back to.
  if (!schedule_->newest_step()) {
    RETURN_IF_ERROR(WriteNeededCheckpoint(/*final=*/false));
  }
  while (step_ < end && !stopping()) {
    RETURN_IF_ERROR(WriteAndEvaluateWhatIsDue());
    if (decisions_->stop()) break;
    RETURN_IF_ERROR(TrainUntilDue(end));
  }
  TrainingReporter nothing_more(clock_);
  NoteProgress(step_, end, nothing_more, /*is_end=*/true);
  const bool is_complete = step_ >= end || (decisions_->stop() && !stopping());
  if (!is_complete && schedule_->newest_step() == step_) {
    return absl::OkStatus();
  }
  return WriteNeededCheckpoint(/*final=*/is_complete);
}

absl::Status LocalTraining::WriteAndEvaluateWhatIsDue() {
  const bool is_evaluation_time =
      evaluation_times_->IsDue(step_, clock_.Now()) &&
      schedule_->MayTry(clock_.Now());
  if (!schedule_->IsDue(step_, clock_.Now()) && !is_evaluation_time) {
    return absl::OkStatus();
  }
  const bool is_evaluation_due = IsEvaluationDue();
  // The last attempt's failure is no reason to end: it was logged. A new owner
  // is.
  if (!TryCheckpoint(/*final=*/false).ok()) {
    schedule_->Failed(clock_.Now());
    const absl::Status owner = ownership_->Check();
    return absl::IsFailedPrecondition(owner) ? owner : absl::OkStatus();
  }
  return is_evaluation_due ? Evaluate(/*final=*/false) : absl::OkStatus();
}

absl::Status LocalTraining::TrainUntilDue(int64_t end) {
  TrainingReporter reporter(clock_);
  const auto is_over = [&](int64_t completed) {
    const absl::Time now = clock_.Now();
    status().NoteStep(completed, ExamplesOfAStep(), now);
    if (progress_->IsDue(completed, steps_per_epoch_, now)) {
      NoteProgress(completed, end, reporter, /*is_end=*/false);
    }
    return completed >= end || stopping() || schedule_->IsDue(completed, now) ||
           (schedule_->MayTry(now) && evaluation_times_->IsDue(completed, now));
  };
  ASSIGN_OR_RETURN(step_, trainer_->Train(step_, is_over, reporter));
  status().Pause();
  NoteProgress(step_, end, reporter, /*is_end=*/false);
  const TrainingReport report = std::exchange(since_line_, {});
  const DeviceTables::CacheUse cache = std::exchange(cache_since_line_, {});
  if (report.steps == 0) return absl::OkStatus();  // stopped before the first
  ShowWaitRatio(report.times, trainer_->metrics().wait_ratio);
  const double loss = report.loss_sum / static_cast<double>(std::max<int64_t>(
                                            report.examples, 1));
  const double speed = static_cast<double>(report.examples) /
                       absl::ToDoubleSeconds(report.elapsed);
  LogFields fields;
  fields.AddCount("step", step_);
  if (end != INT64_MAX) fields.AddCount("end_step", end);
  fields.AddNumber("loss", loss).AddNumber("examples_per_second", speed);
  LOG(INFO) << "step " << step_ << " of " << end << ", loss " << loss << ", "
            << speed << " examples/s" << DescribeUse(cache) << fields;
  return absl::OkStatus();
}

absl::Status LocalTraining::TryCheckpoint(bool final) {
  durable::CheckpointManifest manifest;
  manifest.set_global_step(step_);
  manifest.set_run_id(run_.run_id);
  History().AddTo(manifest);
  *manifest.mutable_job() = job();
  contents_.AddTo(manifest);
  manifest.set_final(final);
  const bool is_evaluation_due = evaluation_times_->IsDue(step_, clock_.Now());
  manifest.set_evaluation_due(is_evaluation_due);
  manifest.set_reduced_learning_rate(decisions_->learning_rate().value_or(0));
  manifest.set_created_unix_micros(absl::ToUnixMicros(clock_.Now()));
  const auto save = [this](const std::string& directory,
                           durable::CheckpointManifest& files) -> absl::Status {
    ASSIGN_OR_RETURN(
        const std::unique_ptr<ShardWriter> writer,
        ShardWriter::Create(absl::StrCat(directory, "/", kShardFile)));
    RETURN_IF_ERROR(trainer_->Save(*writer));
    ASSIGN_OR_RETURN(*files.add_file(), writer->Finish());
    return absl::OkStatus();
  };
  const absl::Status status = StoreCheckpoint(
      *store_, std::move(manifest), job().checkpoint().max_to_keep(), save,
      [this] { return ownership_->Check(); },
      [this] {
        return KeptCheckpoints{.best_first = decisions_->best_first()};
      });
  if (status.ok()) {
    LOG(INFO) << "checkpoint " << store_->PathOf(step_)
              << LogFields().AddCount("step", step_);
    this->status().Update([this](wire::JobStatus& now) {
      now.set_checkpoint(store_->PathOf(step_));
      now.clear_trouble();
    });
    schedule_->Written(step_, clock_.Now());
    if (is_evaluation_due) evaluation_times_->Written(step_, clock_.Now());
  } else {
    LOG(WARNING) << "no checkpoint of step " << step_ << ": "
                 << status.message();
    this->status().Update([&](wire::JobStatus& now) {
      now.set_trouble(absl::StrCat("no checkpoint of step ", step_, ": ",
                                   status.message()));
    });
  }
  return status;
}

absl::Status LocalTraining::WriteNeededCheckpoint(bool final) {
  schedule_->StartOver();
  while (true) {
    const bool is_stopping = stopping();
    const absl::Status status = TryCheckpoint(final);
    if (status.ok()) return status;
    const absl::Status owner = ownership_->Check();
    if (absl::IsFailedPrecondition(owner)) return owner;
    if (is_stopping) {
      return EndWithoutCheckpoint(step_, absl::ZeroDuration(), status);
    }
    const absl::Time now = clock_.Now();
    schedule_->Failed(now, CheckpointSchedule::kMaxAwaitedBackoff);
    const absl::Time give_up =
        schedule_->failing_since() + options_.checkpoint_timeout;
    if (now >= give_up) {
      return EndWithoutCheckpoint(step_, options_.checkpoint_timeout, status);
    }
    absl::MutexLock lock(&mu_);
    clock_.AwaitWithTimeout(mu_, absl::Condition(&stopping_),
                            std::min(schedule_->next_try(), give_up) - now);
  }
}

}  // namespace parasol
