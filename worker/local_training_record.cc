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
  if (HasEvaluationDecisions(options_.job)) {
    const RunHistory history = History();
    ASSIGN_OR_RETURN(evaluations_,
                     ReadEvaluations(store_->directory(), run_.run_id,
                                     [&history](const Evaluation& evaluation) {
                                       return history.Has(evaluation);
                                     }));
  }
  decisions_.emplace(options_.job, run_.checkpoint, evaluations_);
  return UseReducedRate();
}

RunHistory LocalTraining::History() const {
  return RunHistory(run_.checkpoint, ownership_->chief_epoch());
}

bool LocalTraining::IsEvaluationDue() const {
  if (evaluation_ == nullptr) return false;
  return options_.job.has_evaluation()
             ? evaluation_times_->IsDue(step_, clock_.Now())
             : HasEvaluationDecisions(options_.job);
}

void LocalTraining::OpenJournal() {
  absl::StatusOr<std::unique_ptr<TrainingJournal>> journal =
      TrainingJournal::Open({.checkpoint_directory = store_->directory(),
                             .run_id = run_.run_id,
                             .first_step = step_,
                             .outputs = OutputNames(options_.job.model()),
                             .has_event_files = options_.job.tensorboard()});
  if (journal.ok()) {
    journal_ = *std::move(journal);
  } else {
    LOG(WARNING) << "training.jsonl: " << journal.status().message();
  }
  progress_.emplace(options_.job.summary(), journal_ == nullptr
                                                ? absl::ZeroDuration()
                                                : journal_->elapsed());
  if (!options_.job.tensorboard()) return;
  eval_events_.emplace(absl::StrCat(store_->directory(), "/tensorboard/eval"),
                       EventFileName(), step_ + 1);
}

void LocalTraining::NoteResumed() {
  status().Update([this](wire::JobStatus& now) {
    now.set_run_id(run_.run_id);
    now.set_global_step(step_);
    now.set_num_replicas_in_sync(composition_.in_step ? NumReplicas() : 0);
    now.set_was_complete(run_.is_complete);
    if (!run_.checkpoint.has_value()) return;
    now.set_checkpoint(store_->PathOf(step_));
    now.set_resumed_step(step_);
    now.set_resumed_from(store_->PathOf(step_));
  });
}

double LocalTraining::LearningRateAt(int64_t step) const {
  const job::Optimizer& optimizer = options_.job.optimizer();
  if (rate_) return *rate_;
  const absl::StatusOr<LearningRate> rate = LearningRate::Create(
      InitialLearningRate(optimizer), optimizer.learning_rate_schedule());
  return rate.ok() ? rate->At(step) : 0;
}

void LocalTraining::NoteCacheUse() {
  if (tables_ == nullptr) return;
  const DeviceTables::CacheUse use = tables_->TakeCacheUse();
  metrics_.cached_rows.Add(static_cast<double>(use.rows));
  metrics_.cache_misses.Add(static_cast<double>(use.misses));
  cache_since_line_.rows += use.rows;
  cache_since_line_.misses += use.misses;
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
  NoteCacheUse();
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
  if (evaluation_ == nullptr) return absl::OkStatus();
  absl::StatusOr<Evaluation> evaluation = RunEvaluation();
  // The next run evaluates the checkpoint if it is the last one.
  if (!final && stopping()) return absl::OkStatus();
  RETURN_IF_ERROR(evaluation.status());
  evaluation->final = final;
  LOG(INFO) << Describe(*evaluation) << EvaluationFields(*evaluation);
  // A run that was complete has its line already.
  if (run_.is_complete) return absl::OkStatus();
  // The result is in the log: no reason to fail.
  const absl::Status appended =
      AppendEvaluation(store_->directory(), *evaluation);
  if (!appended.ok()) LOG(ERROR) << appended.message();
  if (eval_events_) {
    EventFile::Scalars scalars = evaluation->metrics;
    scalars.emplace_back("loss", evaluation->loss);
    const absl::Status added =
        eval_events_->Add(step_, scalars, histograms_, clock_.Now());
    if (!added.ok()) LOG(ERROR) << added.message();
  }
  return Decide(*evaluation);
}

absl::Status LocalTraining::Decide(const Evaluation& evaluation) {
  if (!HasEvaluationDecisions(options_.job)) return absl::OkStatus();
  DropLaterThan(evaluation.global_step - 1, evaluations_);
  evaluations_.push_back(evaluation);
  for (const std::string& line : decisions_->Update(evaluations_)) {
    LOG(INFO) << line;
  }
  const absl::Status named = UpdateBest(*store_, options_.job, evaluations_);
  if (!named.ok()) LOG(ERROR) << "BEST: " << named.message();
  if (evaluation.final || rate_ == decisions_->learning_rate()) {
    return absl::OkStatus();
  }
  // The checkpoint that was evaluated has all that the new rate changes.
  RETURN_IF_ERROR(UseReducedRate());
  return Restore();
}

std::vector<Model*> LocalTraining::EvaluatingModels() {
  return replicas_ == nullptr ? std::vector<Model*>{model_.get()}
                              : replicas_->models();
}

absl::Status LocalTraining::AddHistograms() {
  LocalVariables& variables = parameters_->variables();
  for (size_t i = 0; i < variables.specs().size(); ++i) {
    ASSIGN_OR_RETURN(const absl::Span<const float> values,
                     variables.Read(i, kValueArray));
    histograms_.emplace_back(variables.specs()[i].name, HistogramOf(values));
  }
  const job::Model& spec = options_.job.model();
  for (int i = 0; i < spec.sparse_table_size(); ++i) {
    ASSIGN_OR_RETURN(const std::vector<float> rows, parameters_->SampleRows(i));
    histograms_.emplace_back(absl::StrCat(spec.sparse_table(i).name(), "/rows"),
                             HistogramOf(rows));
  }
  return absl::OkStatus();
}

absl::StatusOr<Evaluation> LocalTraining::RunEvaluation() {
  const absl::Time start = clock_.Now();
  // Averages are evaluated where there are some; training goes on without.
  RETURN_IF_ERROR(parameters_->variables().SwapAverages());
  histograms_.clear();
  for (size_t i = 0; i < model().variables().size(); ++i) {
    RETURN_IF_ERROR(parameters_->Pull({{i, model().HostValue(i)}})->Wait());
    RETURN_IF_ERROR(model().Upload(i));
  }
  const std::vector<Model*> models = EvaluatingModels();
  for (size_t i = 0; i < model().variables().size(); ++i) {
    for (Model* const other : absl::MakeSpan(models).subspan(1)) {
      RETURN_IF_ERROR(parameters_->Pull({{i, other->HostValue(i)}})->Wait());
      RETURN_IF_ERROR(other->Upload(i));
    }
  }
  if (options_.job.tensorboard_histograms()) {
    RETURN_IF_ERROR(AddHistograms());
  }
  const absl::StatusOr<ModelEvaluation::Result> evaluated = evaluation_->Run(
      models,
      [this](absl::Span<const StagedBatch::Rows> tables) {
        TrainingParameters::PullRequest pull;
        for (const StagedBatch::Rows& rows : tables) {
          pull.rows.push_back({rows.table, rows.ids, rows.values});
        }
        return parameters_->Pull(std::move(pull))->Wait();
      },
      [this] { return stopping(); });
  RETURN_IF_ERROR(parameters_->variables().SwapAverages());
  RETURN_IF_ERROR(evaluated.status());
  const ModelEvaluation::Result& result = *evaluated;
  return Evaluation{.global_step = step_,
                    .metrics = result.metrics,
                    .loss = result.loss,
                    .examples = result.examples,
                    .took = clock_.Now() - start,
                    .checkpoint = store_->PathOf(step_),
                    .run_id = run_.run_id,
                    .chief_epoch = ownership_->chief_epoch()};
}

}  // namespace parasol
