#include "loop/peers/program_chief.h"

#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "cluster/progress/training_journal.h"
#include "coordinator/order.h"
#include "coordinator/watch/findings.h"
#include "loop/peers/program_settings.h"
#include "loop/peers/reported_iteration.h"
#include "storage/checkpoint_reader.h"

namespace parasol {
namespace {

// Time between two reports, at least where nothing is written down.
constexpr absl::Duration kReportInterval = absl::Seconds(1);

}  // namespace

// The values of the program, which has made them with their initial values.
class ProgramChief::Shard : public LoneShard {
 public:
  Shard(ParameterStore& store, int replicas)
      : store_(store), replicas_(replicas) {}

  void SaveBy(ProgramChief::Save save) { save_ = std::move(save); }

  absl::Status Load(const std::string& checkpoint,
                    std::optional<double> rate) override {
    if (rate) {
      return absl::InvalidArgumentError(
          "reduce_learning_rate: a program with a loop of its own sets its "
          "rates itself; leave it out");
    }
    if (checkpoint.empty()) return absl::OkStatus();
    ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> reader,
                     CheckpointReader::Open(checkpoint));
    RETURN_IF_ERROR(store_.Restore(*reader)) << checkpoint;
    return absl::OkStatus();
  }
  absl::Status Save(ShardWriter& writer) const override {
    return save_ == nullptr ? store_.Save(writer) : save_(writer);
  }
  int replicas_in_step() const override { return replicas_; }
  // The program's data is its own.
  int64_t train_examples() const override { return 0; }
  absl::StatusOr<std::vector<int64_t>> ShardExamples() const override {
    return std::vector<int64_t>();
  }

 private:
  ParameterStore& store_;
  const int replicas_;
  ProgramChief::Save save_;
};

ProgramChief::ProgramChief(Options options, Clock& clock,
                           MetricsRegistry& metrics)
    : options_(std::move(options)),
      clock_(clock),
      metrics_(metrics),
      reporter_(clock, /*hooks=*/nullptr,
                options_.shown == nullptr
                    ? nullptr
                    : &options_.shown->inspection().recorder(),
                "training"),
      recorded_(metrics) {
  if (options_.shown != nullptr) {
    options_.shown->inspection().ShowThisThreadFirst();
  }
}

ProgramChief::~ProgramChief() {
  absl::MutexLock lock(&mu_);
  shown_ = nullptr;
}

wire::JobStatus ProgramChief::Status() const {
  wire::JobStatus status;
  absl::MutexLock lock(&mu_);
  if (shown_ != nullptr) {
    status = shown_->Status();
    if (status.end_step() >= kEndless) status.set_end_step(end_step_);
    return status;
  }
  status.set_phase(wire::LOADING);
  status.set_trouble(trouble_);
  AddFindings(status);
  return status;
}

absl::StatusOr<int64_t> ProgramChief::Start(ParameterStore& store) {
  shard_ = std::make_unique<Shard>(store, options_.replicas);
  const auto tell = [this](absl::string_view trouble) {
    absl::MutexLock lock(&mu_);
    trouble_ = std::string(trouble);
  };
  ASSIGN_OR_RETURN(
      chief_,
      LoneChief::Start({.job = options_.job,
                        .variables = store.variables().specs(),
                        .contents = store.contents(),
                        .checkpoint_timeout = options_.checkpoint_timeout,
                        .is_stopping = options_.is_stopping,
                        .on_trouble = tell,
                        .ends_when_told = true},
                       *shard_, clock_));
  {
    absl::MutexLock lock(&mu_);
    shown_ = chief_.get();
  }
  const CoordinatorOptions& run = chief_->run();
  step_ = run.resumed ? run.resumed->global_step() : 0;
  if (run.already_complete) {
    outcome_ = absl::OkStatus();
    RETURN_IF_ERROR(shard_->Load(run.resumed_from, std::nullopt));
    return step_;
  }
  ASSIGN_OR_RETURN(const bool goes_on, FollowOrders());
  if (!goes_on) {
    RETURN_IF_ERROR(*outcome_);
  }
  return step_;
}

void ProgramChief::GoOnWith(Save save, int64_t step) {
  shard_->SaveBy(std::move(save));
  step_ = step;
  chief_->Complete(step_);
  if (outcome_) return;
  record_ = std::make_unique<LoneRecord>(
      options_.job,
      TrainingJournal::Options{
          .checkpoint_directory = chief_->store().directory(),
          .run_id = chief_->run().run_id,
          .first_step = step_,
          .outputs = OutputNames(options_.job.model()),
          .has_event_files = options_.job.tensorboard(),
          .check_owner = [this] { return chief_->CheckOwner(); }},
      clock_);
  // What the first line is compared with.
  record_->Note(chief_->Status(), /*is_end=*/false);
  reporter_.Begin(StepPart::kCompute, clock_.Now());
}

absl::StatusOr<bool> ProgramChief::Commit(const Iteration& iteration) {
  step_ = iteration.step;
  reporter_.End(clock_.Now());
  metrics_.steps.Add();
  metrics_.examples.Add(static_cast<double>(iteration.examples));
  if (iteration.examples > 0) {
    const auto examples = static_cast<double>(iteration.examples);
    metrics_.loss.Set(iteration.loss_sum / examples);
  }
  ReportIteration(iteration, reporter_);
  recorded_.Show(iteration.values);
  if (outcome_) return false;
  {
    absl::MutexLock lock(&mu_);
    end_step_ = iteration.end_step;
  }
  chief_->Complete(step_);
  if (record_->IsDue(step_) || clock_.Now() - reported_ >= kReportInterval) {
    Report(/*is_end=*/false);
  }
  ASSIGN_OR_RETURN(const bool goes_on, FollowOrders());
  if (goes_on) reporter_.Begin(StepPart::kCompute, clock_.Now());
  return goes_on;
}

absl::StatusOr<bool> ProgramChief::FollowOrders() {
  chief_->Complete(step_);
  while (true) {
    if (chief_->StartStep()) return true;
    outcome_ = chief_->Outcome();
    if (outcome_) return false;
    if (const std::optional<Order> order = chief_->NextOrder()) {
      RETURN_IF_ERROR(std::visit(
          [this](const auto& order) { return CarryOut(order); }, *order));
    } else if (!options_.is_stopping()) {
      chief_->Pause();
    }
    // A run that is told to stop has been left.
    if (!options_.is_stopping()) chief_->Complete(step_);
  }
}

absl::Status ProgramChief::CarryOut(const LoadOrder& order) {
  const LoneStatus::Activity load(options_.shown, "load", LoneStatus::kOrders,
                                  wire::Finding::LOADING,
                                  "loading its variables");
  return chief_->CarryOut(order);
}

absl::Status ProgramChief::CarryOut(const CheckpointOrder& order) {
  if (record_ != nullptr &&
      (order.manifest.final() || options_.is_stopping())) {
    Report(/*is_end=*/true);
  }
  const absl::Status written = [&] {
    const LoneStatus::Activity writes(
        options_.shown, "checkpoint", LoneStatus::kOrders,
        wire::Finding::CHECKPOINT, "writing a checkpoint");
    return chief_->Write(order);
  }();
  chief_->Done(order, written);
  return absl::OkStatus();
}

void ProgramChief::Report(bool is_end) {
  reported_ = clock_.Now();
  const TrainingReport report = reporter_.Take();
  const wire::WorkerTotals totals = chief_->Report(report);
  record_->AddWork(report, {});
  record_->Note(chief_->Status(), is_end);
  if (options_.shown != nullptr) {
    options_.shown->Report(totals);
    options_.shown->ShowOnPage();
  }
  if (is_end) {
    record_->LogSteps(step_, /*end_step=*/step_, metrics_.wait_ratio);
  }
}

// A run whose first checkpoint is all that there is to keep has no end.
absl::Status ProgramChief::End() {
  if (!outcome_ && step_ == 0) return absl::OkStatus();
  if (!outcome_) {
    // A run that is told to stop is taken up again.
    if (!options_.is_stopping()) chief_->End();
    RETURN_IF_ERROR(FollowOrders().status());
  }
  return outcome_.value_or(absl::InternalError("the run did not end"));
}

}  // namespace parasol
