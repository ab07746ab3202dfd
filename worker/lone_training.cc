#include "worker/lone_training.h"

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "cluster/checkpoint/best_checkpoint.h"
#include "cluster/checkpoint/evaluation_decisions.h"
#include "cluster/checkpoint/evaluation_fields.h"
#include "cluster/checkpoint/run_history.h"
#include "cluster/hook/training_hooks.h"
#include "coordinator/watch/findings.h"
#include "worker/part_shown.h"
#include "worker/shown/lone_status.h"

namespace parasol {
namespace {

// Time between two reports, at least where nothing is written down.
constexpr absl::Duration kReportInterval = absl::Seconds(1);

// Returns the evaluations of a run that was taken up, also if nothing goes by
// them but those who look on.
std::vector<Evaluation> EvaluationsOf(const CoordinatorOptions& run,
                                      const std::string& directory) {
  if (GoesByEvaluations(run.job)) return run.evaluations;
  const RunHistory history(run.resumed, run.chief_epoch);
  absl::StatusOr<std::vector<Evaluation>> read = ReadEvaluations(
      directory, run.run_id,
      [&](const Evaluation& evaluation) { return history.Has(evaluation); });
  if (read.ok()) return *std::move(read);
  LOG(WARNING) << read.status().message()
               << "; the page lacks the evaluations before";
  return {};
}

}  // namespace

class LoneTraining::Steps : public StepSource {
 public:
  Steps(LoneTraining& training, TrainingReporter& reporter)
      : training_(training), reporter_(reporter) {}

  absl::StatusOr<std::optional<int64_t>> Start() override {
    training_.chief_->Complete(training_.step_);
    if (training_.record_->IsDue(training_.step_) ||
        training_.clock_.Now() - training_.reported_ >= kReportInterval) {
      training_.Report(reporter_);
    }
    return training_.chief_->StartStep();
  }
  std::vector<int64_t> Upcoming() override {
    return training_.chief_->Upcoming();
  }
  bool CanStartNow() override { return true; }
  void Complete() override { ++training_.step_; }
  void Stop() override {}

 private:
  LoneTraining& training_;
  TrainingReporter& reporter_;
};

LoneTraining::LoneTraining(Options options, Clock& clock,
                           MetricsRegistry& metrics)
    : options_(std::move(options)), clock_(clock), metrics_(metrics) {
  Show();
}

// The last status stays on the page.
LoneTraining::~LoneTraining() {
  if (options_.shown != nullptr) options_.shown->Ask({});
}

wire::JobStatus LoneTraining::Status() const {
  wire::JobStatus status;
  absl::MutexLock lock(&mu_);
  if (shown_ != nullptr) return shown_->Status();
  status.set_phase(wire::LOADING);
  status.set_trouble(trouble_);
  AddFindings(status);
  return status;
}

void LoneTraining::Show() {
  if (options_.shown == nullptr) return;
  options_.shown->Ask({.status = [this] { return Status(); },
                       .part = [this]() -> std::optional<LoneStatus::Doing> {
                         absl::MutexLock lock(&mu_);
                         return steps_ == nullptr ? std::nullopt
                                                  : DoingOf(*steps_);
                       }});
}

absl::Status LoneTraining::Run() {
  if (options_.shown != nullptr) {
    options_.shown->inspection().ShowThisThreadFirst();
  }
  RETURN_IF_ERROR(Open());
  if (chief_->run().already_complete) return Evaluate(/*final=*/true);
  record_ = std::make_unique<LoneRecord>(
      job(),
      TrainingJournal::Options{
          .checkpoint_directory = chief_->store().directory(),
          .run_id = chief_->run().run_id,
          .first_step = step_,
          .outputs = OutputNames(job().model()),
          .has_event_files = job().tensorboard(),
          .check_owner = [this] { return chief_->CheckOwner(); }},
      clock_);
  return Train();
}

absl::Status LoneTraining::Open() {
  ASSIGN_OR_RETURN(trainer_,
                   LoneTrainer::Open(options_.trainer, clock_, metrics_));
  const auto tell = [this](absl::string_view trouble) {
    absl::MutexLock lock(&mu_);
    trouble_ = std::string(trouble);
  };
  ASSIGN_OR_RETURN(
      chief_,
      LoneChief::Start({.job = job(),
                        .variables = options_.trainer.graph.variables,
                        .checkpoint_timeout = options_.checkpoint_timeout,
                        .is_stopping = [this] { return stopping_.load(); },
                        .on_trouble = tell},
                       *trainer_, clock_));
  const CoordinatorOptions& run = chief_->run();
  step_ = run.resumed ? run.resumed->global_step() : 0;
  evaluations_ = EvaluationsOf(run, chief_->store().directory());
  if (options_.shown != nullptr) {
    options_.shown->page().Evaluated(evaluations_);
  }
  absl::MutexLock lock(&mu_);
  shown_ = chief_.get();
  return absl::OkStatus();
}

void LoneTraining::LookForHooks(const std::string& checkpoint) {
  if (options_.hooks == nullptr || options_.hooks->is_empty()) return;
  wire::JobStatus status = chief_->Status();
  if (!checkpoint.empty()) status.set_checkpoint(checkpoint);
  options_.hooks->Look(status, /*is_exact=*/true);
}

absl::Status LoneTraining::Train() {
  LookForHooks();
  std::optional<absl::Status> outcome;
  while (!(outcome = chief_->Outcome())) {
    if (const std::optional<Order> order = chief_->NextOrder()) {
      RETURN_IF_ERROR(std::visit(
          [this](const auto& order) { return CarryOut(order); }, *order));
    } else if (!stopping_) {
      RETURN_IF_ERROR(TrainUntilOrder());
    }
  }
  return *outcome;
}

absl::Status LoneTraining::TrainUntilOrder() {
  if (chief_->Status().phase() != wire::TRAINING) {
    chief_->Pause();
    return absl::OkStatus();
  }
  const int64_t first = step_;
  TrainingReporter reporter(clock_, options_.hooks,
                            options_.shown == nullptr
                                ? nullptr
                                : &options_.shown->inspection().recorder(),
                            "training", first);
  Steps steps(*this, reporter);
  SetSteps(&reporter);
  const absl::Status trained = trainer_->Train(step_, steps, reporter);
  SetSteps(nullptr);
  RETURN_IF_ERROR(trained);
  Report(reporter);
  record_->LogSteps(step_, chief_->Status().end_step(),
                    trainer_->metrics().wait_ratio);
  if (step_ == first) chief_->Pause();
  return absl::OkStatus();
}

void LoneTraining::SetSteps(const TrainingReporter* reporter) {
  absl::MutexLock lock(&mu_);
  steps_ = reporter;
}

void LoneTraining::Report(TrainingReporter& reporter, bool is_end) {
  reported_ = clock_.Now();
  const TrainingReport report = reporter.Take();
  chief_->Report(report);
  record_->AddWork(report, trainer_->TakeCacheUse());
  record_->Note(chief_->Status(), is_end);
  if (options_.shown != nullptr) options_.shown->ShowOnPage();
  LookForHooks();
}

absl::Status LoneTraining::CarryOut(const LoadOrder& order) {
  {
    const LoneStatus::Activity load(options_.shown, "load", LoneStatus::kOrders,
                                    wire::Finding::LOADING,
                                    "loading its variables");
    RETURN_IF_ERROR(chief_->CarryOut(order));
  }
  const std::optional<durable::CheckpointManifest>& resumed =
      chief_->run().resumed;
  // The process before may have ended between the checkpoint and its result,
  // which the job waits for with evaluation.max_lag.
  const bool lacks_result =
      resumed && step_ > 0 && step_ == resumed->global_step() &&
      chief_->is_loaded() && GoesByEvaluations(job()) &&
      IsEvaluationDue(*resumed) &&
      (evaluations_.empty() || evaluations_.back().global_step < step_);
  return lacks_result ? Evaluate(/*final=*/false) : absl::OkStatus();
}

bool LoneTraining::IsEvaluationDue(
    const durable::CheckpointManifest& manifest) const {
  return job().has_evaluation() ? manifest.evaluation_due()
                                : HasEvaluationDecisions(job());
}

absl::Status LoneTraining::CarryOut(const CheckpointOrder& order) {
  const bool is_training = chief_->Status().phase() >= wire::TRAINING;
  const bool is_last = order.manifest.final();
  if (is_training && (is_last || stopping_)) {
    TrainingReporter nothing_more(clock_);
    Report(nothing_more, /*is_end=*/true);
  }
  const absl::Status written = [&] {
    const LoneStatus::Activity writes(
        options_.shown, "checkpoint", LoneStatus::kOrders,
        wire::Finding::CHECKPOINT, "writing a checkpoint");
    return chief_->Write(order);
  }();
  if (written.ok()) LookForHooks(chief_->store().PathOf(step_));
  // The job is complete when its last checkpoint is evaluated.
  if (written.ok() && is_last) {
    RETURN_IF_ERROR(Evaluate(/*final=*/true));
  }
  chief_->Done(order, written);
  return written.ok() && IsEvaluationDue(order.manifest) && is_training &&
                 !is_last && !stopping_
             ? Evaluate(/*final=*/false)
             : absl::OkStatus();
}

absl::Status LoneTraining::Evaluate(bool final) {
  if (!trainer_->CanEvaluate()) return absl::OkStatus();
  const CoordinatorOptions& run = chief_->run();
  if (run.already_complete) {
    RETURN_IF_ERROR(trainer_->Load(run.resumed_from, std::nullopt));
  }
  const absl::Time start = clock_.Now();
  const absl::StatusOr<LoneTrainer::Evaluated> evaluated = [&] {
    const LoneStatus::Activity evaluates(
        options_.shown, "evaluation", "evaluations", wire::Finding::EVALUATION,
        "evaluating its values, and training waits");
    return trainer_->Evaluate([this] { return stopping_.load(); });
  }();
  // The next run evaluates the checkpoint if it is the last one.
  if (stopping_) {
    return final ? absl::CancelledError(absl::StrCat("stopped at step ", step_))
                 : absl::OkStatus();
  }
  RETURN_IF_ERROR(evaluated.status());
  const Evaluation evaluation = {.global_step = step_,
                                 .metrics = evaluated->result.metrics,
                                 .loss = evaluated->result.loss,
                                 .examples = evaluated->result.examples,
                                 .took = clock_.Now() - start,
                                 .checkpoint = chief_->store().PathOf(step_),
                                 .final = final,
                                 .run_id = run.run_id,
                                 .chief_epoch = run.chief_epoch};
  LOG(INFO) << Describe(evaluation) << EvaluationFields(evaluation);
  // A run that was complete has its line already.
  if (run.already_complete) return absl::OkStatus();
  record_->AddEvaluation(evaluation, evaluated->histograms);
  if (options_.hooks != nullptr) options_.hooks->OnEvaluation(evaluation);
  Keep(evaluation);
  return absl::OkStatus();
}

void LoneTraining::Keep(const Evaluation& evaluation) {
  const std::string& directory = chief_->store().directory();
  // The result is in the log: no reason to fail.
  const absl::Status appended = AppendEvaluation(
      directory, evaluation, [this] { return chief_->CheckOwner(); });
  if (!appended.ok()) LOG(ERROR) << appended.message();
  DropLaterThan(evaluation.global_step - 1, evaluations_);
  evaluations_.push_back(evaluation);
  chief_->Evaluated(evaluations_);
  if (options_.shown != nullptr) {
    options_.shown->page().Evaluated(evaluations_);
  }
  if (!HasEvaluationDecisions(job())) return;
  const absl::Status named =
      UpdateBest(chief_->store(), job(), evaluations_,
                 [this] { return chief_->CheckOwner(); });
  if (!named.ok()) LOG(ERROR) << "BEST: " << named.message();
}

}  // namespace parasol
