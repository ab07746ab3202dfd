#include "worker/mirrored/split_parameters.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "worker/mirrored/wait_intervals.h"

namespace parasol {
namespace {

GroupParameters::Options WithTables(GroupParameters::Options options,
                                    TablePushes& pushes) {
  options.tables = &pushes;
  return options;
}

}  // namespace

// A pull of rows, which ends when the worker's last step may not go on.
class SplitParameters::RowPull : public Pending {
 public:
  RowPull(SplitParameters& parameters, std::unique_ptr<Pending> rows)
      : parameters_(parameters), rows_(std::move(rows)) {}

  ~RowPull() override { NoteWait(/*is_over=*/true); }

  absl::Status Wait() override {
    while (!WaitFor(kPollInterval)) parameters_.variables_.AbortIfStopping();
    return rows_->Wait();
  }
  bool WaitFor(absl::Duration limit) override {
    const bool is_over = rows_->WaitFor(limit);
    NoteWait(is_over);
    return is_over;
  }
  // Updates that are not made in step say nothing of steps.
  Outcome outcome() const override {
    return parameters_.pushes_.in_step() ? rows_->outcome() : Outcome();
  }

 private:
  void NoteWait(bool is_over) {
    const RowPull* own = this;
    if (is_over) {
      parameters_.awaited_rows_.compare_exchange_strong(own, nullptr);
    } else {
      parameters_.awaited_rows_ = this;
    }
  }

  SplitParameters& parameters_;
  const std::unique_ptr<Pending> rows_;
};

// A push, complete when its step is. The ps's answer to the rows comes before.
class SplitParameters::StepPush : public Pending {
 public:
  StepPush(const TablePushes& tables, const SyncStep& step,
           std::unique_ptr<Pending> variables)
      : tables_(tables), step_(step), variables_(std::move(variables)) {}

  absl::Status Wait() override {
    RETURN_IF_ERROR(variables_->Wait());
    has_dropped_ = tables_.HasDropped(step_);
    return absl::OkStatus();
  }
  bool WaitFor(absl::Duration limit) override {
    return variables_->WaitFor(limit);
  }
  Outcome outcome() const override {
    Outcome outcome = variables_->outcome();
    outcome.stale |= has_dropped_;
    return outcome;
  }

 private:
  const TablePushes& tables_;
  const SyncStep step_;
  const std::unique_ptr<Pending> variables_;
  bool has_dropped_ = false;
};

SplitParameters::SplitParameters(GroupParameters::Options options,
                                 MirroredState& state,
                                 CollectiveEndpoint& endpoint,
                                 std::unique_ptr<TrainingParameters> tables,
                                 bool in_step, Clock& clock,
                                 MetricsRegistry& metrics)
    : client_(std::move(tables)),
      pushes_(*client_, state.job().model().sparse_table_size(), in_step,
              clock),
      variables_(WithTables(std::move(options), pushes_), state, endpoint,
                 clock, metrics) {}

std::unique_ptr<TrainingParameters::Pending> SplitParameters::Pull(
    PullRequest request) {
  if (request.rows.empty()) return variables_.Pull(std::move(request));
  if (!pushes_.in_step()) request.min_updates = 0;
  return std::make_unique<RowPull>(*this, client_->Pull(std::move(request)));
}

std::unique_ptr<TrainingParameters::Pending> SplitParameters::Push(
    PushRequest request) {
  const SyncStep step = *request.sync;
  pushes_.Add(step, request.rows);
  request.rows.clear();
  return std::make_unique<StepPush>(pushes_, step,
                                    variables_.Push(std::move(request)));
}

TrainingParameters::Awaited SplitParameters::Unanswered() const {
  const Awaited of_tables = client_->Unanswered();
  Awaited awaited = variables_.Unanswered();
  awaited.last_loading = std::max(awaited.last_loading, of_tables.last_loading);
  if (pushes_.in_step()) awaited.moves = of_tables.moves;
  if (awaited_rows_.load() != nullptr) awaited.peers.clear();
  awaited.peers.insert(awaited.peers.end(), of_tables.peers.begin(),
                       of_tables.peers.end());
  return awaited;
}

}  // namespace parasol
