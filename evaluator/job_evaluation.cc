#include "evaluator/job_evaluation.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "base/thread_priority.h"
#include "base/uri/uri_path.h"
#include "cluster/checkpoint/best_checkpoint.h"
#include "cluster/checkpoint/evaluation_decisions.h"
#include "cluster/checkpoint/evaluation_fields.h"
#include "cluster/checkpoint/model/checkpoint_listing.h"
#include "cluster/hook/training_hooks.h"
#include "storage/durable_file.h"

namespace parasol {
namespace {

constexpr absl::Duration kLogInterval = absl::Seconds(10);
// Longest time between two looks at the directory if the job may wait for each
// evaluation.
constexpr absl::Duration kAwaitedPollInterval = absl::Milliseconds(100);
constexpr absl::Duration kAwaitedLogInterval = absl::Minutes(1);

}  // namespace

JobEvaluation::JobEvaluation(const Options& options,
                             std::unique_ptr<ChiefSession> session,
                             Clock& clock, MetricsRegistry& registry)
    : options_(options),
      session_(std::move(session)),
      store_(options.checkpoint_directory.empty()
                 ? session_->registration().checkpoint_directory()
                 : options.checkpoint_directory),
      clock_(clock),
      metrics_(registry),
      manifests_(store_),
      watch_(*session_, clock) {
  if (!session_->registration().job().tensorboard()) return;
  events_.emplace(JoinedPath(store_.directory(), "tensorboard/eval"),
                  EventFileName(), /*first_step=*/0);
}

absl::Status JobEvaluation::Run() {
  const job::Job& job = session_->registration().job();
  if (!job.has_eval()) {
    LOG(INFO) << "job " << job.name()
              << " has no eval data set: nothing to evaluate";
    return AwaitJobEnd();
  }
  EvaluatedModel::Options options = options_.model;
  options.compute.with_samples = job.tensorboard_histograms();
  ASSIGN_OR_RETURN(const std::unique_ptr<EvaluatedModel> model,
                   EvaluatedModel::Create(job, options));
  // As a worker beside it.
  if (model->device_kind() == Device::Kind::kCpu) {
    LowerThreadPriority(job.worker().compute_niceness());
  }
  LOG(INFO) << "evaluating the checkpoints in " << store_.directory() << " on "
            << model->device_name();
  RETURN_IF_ERROR(AwaitDirectory());
  return Follow(*model);
}

absl::Duration JobEvaluation::PollInterval() const {
  const bool is_awaited =
      session_->registration().job().evaluation().has_max_lag();
  return is_awaited ? std::min(options_.poll_interval, kAwaitedPollInterval)
                    : options_.poll_interval;
}

absl::Status JobEvaluation::AwaitJobEnd() {
  while (!watch_.end().has_value()) watch_.Pause(kLogInterval);
  return *watch_.end();
}

absl::Status JobEvaluation::AwaitDirectory() {
  // A store has any.
  if (IsUri(store_.directory())) return absl::OkStatus();
  const absl::Time give_up = clock_.Now() + options_.directory_timeout;
  absl::Time next_log = absl::InfinitePast();
  // A path that is not a directory is an error of the first listing.
  while (absl::IsNotFound(FileSize(store_.directory()).status())) {
    const absl::Time now = clock_.Now();
    if (watch_.end().has_value()) return absl::OkStatus();
    if (now >= give_up) {
      return absl::NotFoundError(absl::StrCat(
          "checkpoint directory ", store_.directory(), ": is not here ",
          absl::FormatDuration(options_.directory_timeout),
          " after the chief has made it; mount the chief's volume at this "
          "path, or set --checkpoint_dir"));
    }
    if (now >= next_log) {
      next_log = now + kLogInterval;
      LOG(WARNING) << "waiting for the checkpoint directory "
                   << store_.directory()
                   << ", which the chief has made; is the chief's volume "
                      "mounted here at this path?";
    }
    watch_.Pause(options_.poll_interval);
  }
  return absl::OkStatus();
}

void JobEvaluation::LogAwaited() {
  const absl::Time now = clock_.Now();
  if (now < next_awaited_log_) return;
  next_awaited_log_ = now + kAwaitedLogInterval;
  const wire::HeartbeatResponse state = session_->state();
  LOG(INFO) << "waiting for the first checkpoint to evaluate in "
            << store_.directory() << ", which the chief orders"
            << (state.missing_task().empty()
                    ? ""
                    : absl::StrCat("; the chief waits for ",
                                   absl::StrJoin(state.missing_task(), ", ")));
}

absl::Status JobEvaluation::Follow(EvaluatedModel& model) {
  RETURN_IF_ERROR(UpdateListing());
  if (const auto* const newest = CheckpointFollower::Newest(listing_)) {
    newest_at_start_ = *newest;
  }
  if (watch_.was_complete()) PassOverEvaluated();
  absl::Time give_up = absl::InfiniteFuture();
  while (true) {
    // Asked before listing: all that the job wrote before its end is listed.
    const std::optional<absl::Status> end = watch_.end();
    const bool chief_lost = end.has_value() && absl::IsUnavailable(*end);
    if (end.has_value() && !end->ok() && !chief_lost) return *end;
    RETURN_IF_ERROR(UpdateListing());
    if (listing_.empty()) LogAwaited();
    RETURN_IF_ERROR(EvaluateNewOnes(model));
    if (end.has_value() && IsLastEvaluated(*end)) return ResultAtEnd();
    if (chief_lost) return *end;
    if (end.has_value()) {
      const absl::Time now = clock_.Now();
      give_up = std::min(give_up, now + options_.final_checkpoint_timeout);
      if (now >= give_up) return LastNotVisibleError();
    }
    watch_.Pause(PollInterval());
  }
}

// What an evaluator before this one has done of a job that had ended.
void JobEvaluation::PassOverEvaluated() {
  const absl::StatusOr<std::vector<Evaluation>> evaluations =
      ReadEvaluations(store_.directory(), session_->registration().run_id());
  if (!evaluations.ok()) {
    LOG(WARNING) << evaluations.status().message();
    return;
  }
  for (const ListedCheckpoint& checkpoint : listing_) {
    const bool has_line =
        std::any_of(evaluations->begin(), evaluations->end(),
                    [&checkpoint](const Evaluation& evaluation) {
                      return evaluation.global_step == checkpoint.step &&
                             evaluation.final == checkpoint.final;
                    });
    if (!has_line || checkpoint.damaged) continue;
    LOG(INFO) << store_.PathOf(checkpoint.step) << " was evaluated before";
    follower_.Evaluated(checkpoint);
  }
}

absl::Status JobEvaluation::UpdateListing() {
  absl::StatusOr<Listing> listing =
      ListCheckpoints(manifests_, IsToBeEvaluated);
  if (absl::IsUnavailable(listing.status())) {
    LOG_EVERY(WARNING, kLogInterval) << listing.status().message();
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(listing.status());
  listing_ = *std::move(listing);
  follower_.Forget(listing_);
  return absl::OkStatus();
}

absl::Status JobEvaluation::EvaluateNewOnes(EvaluatedModel& model) {
  VisitDamaged(
      store_, listing_,
      [this](const ListedCheckpoint& checkpoint, const absl::Status& damage) {
        ReportDamaged(checkpoint, damage);
      });
  while (const auto next = follower_.Next(listing_)) {
    if (watch_.stopped()) return *watch_.end();
    const absl::Time start = clock_.Now();
    const absl::StatusOr<durable::CheckpointManifest> manifest =
        Load(model, next->step);
    Trace("load", next->step, start);
    if (absl::IsUnavailable(manifest.status())) {
      LOG_EVERY(WARNING, kLogInterval) << manifest.status().message();
      return absl::OkStatus();  // with the next listing again
    }
    if (absl::IsDataLoss(manifest.status())) {
      ReportDamaged(*next, manifest.status());
      continue;
    }
    follower_.Evaluated(*next);
    if (absl::IsNotFound(manifest.status())) continue;  // pruned meanwhile
    RETURN_IF_ERROR(manifest.status());
    ASSIGN_OR_RETURN(const Evaluation evaluation,
                     Evaluate(model, *manifest, start));
    Trace("evaluation", next->step, start);
    // A checkpoint that its run has gone back behind may come late.
    if (!history_ || manifest->run_id() != run_id_ ||
        manifest->chief_epoch() >= history_->chief_epoch()) {
      history_.emplace(*manifest);
      run_id_ = manifest->run_id();
    }
    Publish(evaluation);
    // It may have been replaced after it was listed.
    follower_.Evaluated(AsListed(*manifest));
  }
  return absl::OkStatus();
}

absl::StatusOr<durable::CheckpointManifest> JobEvaluation::Load(
    EvaluatedModel& model, int64_t step) {
  const job::Job& job = session_->registration().job();
  histograms_.clear();
  if (!job.tensorboard_histograms()) return model.Load(store_.PathOf(step));
  ASSIGN_OR_RETURN(
      durable::CheckpointManifest manifest,
      model.Load(store_.PathOf(step),
                 [&](size_t variable, absl::Span<const float> values) {
                   histograms_.emplace_back(model.variables()[variable].name,
                                            HistogramOf(values));
                 }));
  for (int i = 0; i < job.model().sparse_table_size(); ++i) {
    ASSIGN_OR_RETURN(const std::vector<float> rows, model.SampleRows(i));
    histograms_.emplace_back(
        absl::StrCat(job.model().sparse_table(i).name(), "/rows"),
        HistogramOf(rows));
  }
  return manifest;
}

absl::StatusOr<Evaluation> JobEvaluation::Evaluate(
    EvaluatedModel& model, const durable::CheckpointManifest& manifest,
    absl::Time start) {
  ASSIGN_OR_RETURN(const EvaluatedModel::Result result,
                   model.Run([this] { return watch_.stopped(); }));
  Evaluation evaluation;
  evaluation.global_step = manifest.global_step();
  evaluation.metrics = result.metrics;
  evaluation.loss = result.loss;
  evaluation.examples = result.examples;
  evaluation.took = clock_.Now() - start;
  evaluation.checkpoint = store_.PathOf(manifest.global_step());
  evaluation.final = manifest.final();
  evaluation.run_id = manifest.run_id();
  evaluation.chief_epoch = manifest.chief_epoch();
  return evaluation;
}

void JobEvaluation::Trace(const char* name, int64_t step,
                          absl::Time begin) const {
  if (options_.trace == nullptr || !options_.trace->is_on()) return;
  options_.trace->Add({.name = name,
                       .track = "evaluations",
                       .begin = begin,
                       .end = clock_.Now(),
                       .step = step});
}

void JobEvaluation::Publish(const Evaluation& evaluation) {
  LOG(INFO) << Describe(evaluation) << EvaluationFields(evaluation);
  metrics_.SetResults(evaluation.metrics);
  metrics_.loss.Set(evaluation.loss);
  metrics_.global_step.Set(evaluation.global_step);
  metrics_.evaluations_total.Add();
  metrics_.evaluation_duration_seconds.Observe(
      absl::ToDoubleSeconds(evaluation.took));
  // The result is in the log and the metrics: no reason to end.
  const absl::Status appended =
      AppendEvaluation(store_.directory(), evaluation);
  if (!appended.ok()) LOG(ERROR) << appended.message();
  if (events_) {
    EventFile::Scalars scalars = evaluation.metrics;
    scalars.emplace_back("loss", evaluation.loss);
    const absl::Status added = events_->Add(evaluation.global_step, scalars,
                                            histograms_, clock_.Now());
    if (!added.ok()) LOG(ERROR) << "event file: " << added.message();
  }
  if (options_.hooks != nullptr) options_.hooks->OnEvaluation(evaluation);
  const absl::Status named = NameBest();
  if (!named.ok()) LOG(ERROR) << "BEST: " << named.message();
}

absl::Status JobEvaluation::NameBest() const {
  const job::Job& job = session_->registration().job();
  if (!job.checkpoint().has_keep_best()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<Evaluation> evaluations,
                   ReadEvaluations(store_.directory(), run_id_,
                                   [this](const Evaluation& evaluation) {
                                     return history_->Has(evaluation);
                                   }));
  return UpdateBest(store_, job, evaluations);
}

void JobEvaluation::ReportDamaged(const ListedCheckpoint& checkpoint,
                                  const absl::Status& damage) {
  if (!follower_.FoundDamaged(checkpoint)) return;
  LOG(WARNING) << "passing over a damaged checkpoint: " << damage.message();
  metrics_.corrupt_checkpoints_total.Add();
}

bool JobEvaluation::IsLastEvaluated(const absl::Status& end) const {
  // Without the chief's word, a final checkpoint that was there at the start
  // may belong to a job whose end was put off.
  return follower_.IsAtEnd(listing_) &&
         (end.ok() ||
          newest_at_start_ != *CheckpointFollower::Newest(listing_));
}

absl::Status JobEvaluation::ResultAtEnd() const {
  const ListedCheckpoint& last = *CheckpointFollower::Newest(listing_);
  if (!follower_.IsDamaged(last)) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      store_.PathOf(last.step), ": the job's last checkpoint is damaged"));
}

absl::Status JobEvaluation::LastNotVisibleError() const {
  return absl::NotFoundError(
      absl::StrCat(store_.directory(),
                   ": the job is complete, but its last checkpoint is not "
                   "here; mount the chief's volume at this path, or set "
                   "--checkpoint_dir"));
}

}  // namespace parasol
