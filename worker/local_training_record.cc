// The part of a worker without a cluster that evaluates, goes by the results,
// and writes down how the training goes.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "cluster/checkpoint/best_checkpoint.h"
#include "cluster/checkpoint/evaluation_decisions.h"
#include "cluster/checkpoint/evaluation_fields.h"
#include "cluster/job/learning_rate_field.h"
#include "ml/metric/metric_results.h"
#include "ml/optimizer/learning_rate.h"
#include "worker/local_training.h"

namespace parasol {

absl::Status LocalTraining::ReadDecisions() {
  if (HasEvaluationDecisions(job())) {
    const RunHistory history = History();
    ASSIGN_OR_RETURN(evaluations_,
                     ReadEvaluations(store_->directory(), run_.run_id,
                                     [&history](const Evaluation& evaluation) {
                                       return history.Has(evaluation);
                                     }));
  }
  decisions_.emplace(job(), run_.checkpoint, evaluations_);
  return absl::OkStatus();
}

RunHistory LocalTraining::History() const {
  return RunHistory(run_.checkpoint, ownership_->chief_epoch());
}

bool LocalTraining::IsEvaluationDue() const {
  if (!trainer_->CanEvaluate()) return false;
  return job().has_evaluation() ? evaluation_times_->IsDue(step_, clock_.Now())
                                : HasEvaluationDecisions(job());
}

void LocalTraining::OpenJournal() {
  absl::StatusOr<std::unique_ptr<TrainingJournal>> journal =
      TrainingJournal::Open({.checkpoint_directory = store_->directory(),
                             .run_id = run_.run_id,
                             .first_step = step_,
                             .outputs = OutputNames(job().model()),
                             .has_event_files = job().tensorboard()});
  if (journal.ok()) {
    journal_ = *std::move(journal);
  } else {
    LOG(WARNING) << "training.jsonl: " << journal.status().message();
  }
  progress_.emplace(job().summary(), journal_ == nullptr ? absl::ZeroDuration()
                                                         : journal_->elapsed());
  if (!job().tensorboard()) return;
  eval_events_.emplace(absl::StrCat(store_->directory(), "/tensorboard/eval"),
                       EventFileName(), step_ + 1);
}

void LocalTraining::NoteResumed() {
  status().Update([this](wire::JobStatus& now) {
    now.set_run_id(run_.run_id);
    now.set_global_step(step_);
    now.set_num_replicas_in_sync(
        trainer_->composition().in_step ? trainer_->num_replicas() : 0);
    now.set_was_complete(run_.is_complete);
    if (!run_.checkpoint.has_value()) return;
    now.set_checkpoint(store_->PathOf(step_));
    now.set_resumed_step(step_);
    now.set_resumed_from(store_->PathOf(step_));
  });
}

double LocalTraining::LearningRateAt(int64_t step) const {
  const job::Optimizer& optimizer = job().optimizer();
  if (decisions_->learning_rate()) return *decisions_->learning_rate();
  const absl::StatusOr<LearningRate> rate = LearningRate::Create(
      InitialLearningRate(optimizer), optimizer.learning_rate_schedule());
  return rate.ok() ? rate->At(step) : 0;
}

void LocalTraining::NoteProgress(int64_t step, int64_t end,
                                 TrainingReporter& reporter, bool is_end) {
  const TrainingReport report = reporter.Take();
  since_line_.steps += report.steps;
  since_line_.examples += report.examples;
  since_line_.loss_sum += report.loss_sum;
  since_line_.elapsed += report.elapsed;
  since_line_.times.Add(report.times);
  examples_ += report.examples;
  loss_sum_ += report.loss_sum;
  AddLosses(report.output_loss_sums, output_loss_sums_);
  const DeviceTables::CacheUse use = trainer_->TakeCacheUse();
  cache_since_line_.rows += use.rows;
  cache_since_line_.misses += use.misses;
  status().Update([&](wire::JobStatus& now) {
    now.set_global_step(step);
    now.set_learning_rate(LearningRateAt(step));
    now.set_loss_sum(loss_sum_);
    now.set_loss_examples(examples_);
    now.mutable_output_loss_sum()->Assign(output_loss_sums_.begin(),
                                          output_loss_sums_.end());
    if (report.examples > 0) {
      now.set_loss(report.loss_sum / static_cast<double>(report.examples));
    }
  });
  const absl::Time now = clock_.Now();
  const auto observation =
      progress_->Observe({.global_step = step,
                          .end_step = end == INT64_MAX ? 0 : end,
                          .steps_per_epoch = steps_per_epoch_,
                          .loss_sum = loss_sum_,
                          .output_loss_sums = output_loss_sums_,
                          .examples = examples_,
                          .learning_rate = LearningRateAt(step)},
                         now, is_end);
  if (observation.epoch_line) LOG(INFO) << *observation.epoch_line;
  if (!observation.record || journal_ == nullptr) return;
  // No reason to end.
  const absl::Status added = journal_->Add(*observation.record, now);
  if (!added.ok()) LOG(WARNING) << added.message();
}

absl::Status LocalTraining::Evaluate(bool final) {
  if (!trainer_->CanEvaluate()) return absl::OkStatus();
  const absl::Time start = clock_.Now();
  absl::StatusOr<LocalTrainer::Evaluated> evaluated =
      trainer_->Evaluate([this] { return stopping(); });
  // The next run evaluates the checkpoint if it is the last one.
  if (!final && stopping()) return absl::OkStatus();
  RETURN_IF_ERROR(evaluated.status());
  const ModelEvaluation::Result& result = evaluated->result;
  const Evaluation evaluation = {.global_step = step_,
                                 .metrics = result.metrics,
                                 .loss = result.loss,
                                 .examples = result.examples,
                                 .took = clock_.Now() - start,
                                 .checkpoint = store_->PathOf(step_),
                                 .final = final,
                                 .run_id = run_.run_id,
                                 .chief_epoch = ownership_->chief_epoch()};
  LOG(INFO) << Describe(evaluation) << EvaluationFields(evaluation);
  // A run that was complete has its line already.
  if (run_.is_complete) return absl::OkStatus();
  // The result is in the log: no reason to fail.
  const absl::Status appended =
      AppendEvaluation(store_->directory(), evaluation);
  if (!appended.ok()) LOG(ERROR) << appended.message();
  if (eval_events_) {
    EventFile::Scalars scalars = evaluation.metrics;
    scalars.emplace_back("loss", evaluation.loss);
    const absl::Status added =
        eval_events_->Add(step_, scalars, evaluated->histograms, clock_.Now());
    if (!added.ok()) LOG(ERROR) << added.message();
  }
  return Decide(evaluation);
}

absl::Status LocalTraining::Decide(const Evaluation& evaluation) {
  if (!HasEvaluationDecisions(job())) return absl::OkStatus();
  const std::optional<double> rate = decisions_->learning_rate();
  DropLaterThan(evaluation.global_step - 1, evaluations_);
  evaluations_.push_back(evaluation);
  for (const std::string& line : decisions_->Update(evaluations_)) {
    LOG(INFO) << line;
  }
  const absl::Status named = UpdateBest(*store_, job(), evaluations_);
  if (!named.ok()) LOG(ERROR) << "BEST: " << named.message();
  const bool is_new_rate = decisions_->learning_rate() != rate;
  // The checkpoint that was evaluated has all that the new rate changes.
  return is_new_rate && !evaluation.final
             ? trainer_->Load(store_->PathOf(step_),
                              decisions_->learning_rate())
             : absl::OkStatus();
}

}  // namespace parasol
