#include "worker/group/pushed_rows.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "worker/group/state/wait_intervals.h"

namespace parasol {

// A pull of rows, which ends when the worker's last step may not go on.
class PushedRows::RowPull : public TrainingParameters::Pending {
 public:
  RowPull(PushedRows& parent, std::unique_ptr<Pending> rows)
      : parent_(parent), rows_(std::move(rows)) {}

  ~RowPull() override { NoteWait(/*is_over=*/true); }

  absl::Status Wait() override {
    while (!WaitFor(kPollInterval)) parent_.options_.abort_if_stopping();
    return rows_->Wait();
  }
  bool WaitFor(absl::Duration limit) override {
    const bool is_over = rows_->WaitFor(limit);
    NoteWait(is_over);
    return is_over;
  }
  // Updates that are not made in step say nothing of steps.
  Outcome outcome() const override {
    return parent_.pushes_.in_step() ? rows_->outcome() : Outcome();
  }

 private:
  void NoteWait(bool is_over) {
    const RowPull* own = this;
    if (is_over) {
      parent_.awaited_rows_.compare_exchange_strong(own, nullptr);
    } else {
      parent_.awaited_rows_ = this;
    }
  }

  PushedRows& parent_;
  const std::unique_ptr<Pending> rows_;
};

PushedRows::PushedRows(Options options, GroupState& state, Clock& clock)
    : options_(std::move(options)),
      pushes_(*options_.tables, state.job().model().sparse_table_size(),
              options_.in_step, clock),
      state_(state) {}

std::unique_ptr<TrainingParameters::Pending> PushedRows::Pull(
    const TrainingParameters::PullRequest& request) {
  if (request.rows.empty()) return nullptr;
  TrainingParameters::PullRequest pull = request;
  if (!pushes_.in_step()) pull.min_updates = 0;
  return std::make_unique<RowPull>(*this,
                                   options_.tables->Pull(std::move(pull)));
}

void PushedRows::Take(TrainingParameters::PushRequest& request) {
  pushes_.Add(*request.sync, request.rows);
  request.rows.clear();
}

void PushedRows::AddTo(TrainingParameters::Awaited& awaited) const {
  const TrainingParameters::Awaited of_tables = options_.tables->Unanswered();
  awaited.last_loading = std::max(awaited.last_loading, of_tables.last_loading);
  if (pushes_.in_step()) awaited.moves = of_tables.moves;
  if (awaited_rows_.load() != nullptr) awaited.peers.clear();
  awaited.peers.insert(awaited.peers.end(), of_tables.peers.begin(),
                       of_tables.peers.end());
}

// The answer is there long before the gradients are.
void PushedRows::Begin(GroupRun& run, int64_t step) {
  made_.reset();
  if (!pushes_.in_step()) return;
  const Collective::Done count = run.Count();
  run.collective().AllGather("", &nothing_,
                             [this, step, count](const absl::Status& result) {
                               if (result.ok()) {
                                 absl::MutexLock lock(&mu_);
                                 all_began_ = step;
                               }
                               count(result);
                             });
}

absl::Status PushedRows::Leave(GroupRun& run, int64_t step) {
  if (pushes_.in_step()) {
    RETURN_IF_ERROR(run.AwaitOwn([&] {
      absl::MutexLock lock(&mu_);
      return all_began_ == step;
    }));
  }
  return EndIfNotDone(run, pushes_.Send(step, run.group().replicas,
                                        [&] { return run.CheckMayGoOn(); }));
}

absl::Status PushedRows::Await(GroupRun& run, int64_t step) {
  // Once they were sent a step may still end within the finish limit.
  RETURN_IF_ERROR(EndIfNotDone(
      run, pushes_.AwaitAnswers([&] { return run.collective().status(); })));
  if (!pushes_.in_step()) return absl::OkStatus();
  made_ = Made{.step = step, .group = run.group().version};
  // All have their answers: nobody waits for them in a step that others have
  // made.
  std::vector<std::string> nothing;
  run.collective().AllGather("", &nothing, [](const absl::Status&) {});
  return run.collective().Await();
}

// The group goes on: it is this worker's pushes that can't.
absl::Status PushedRows::EndIfNotDone(GroupRun& run,
                                      const absl::Status& pushed) {
  if (!pushed.ok() && !absl::IsCancelled(pushed) &&
      run.collective().status().ok()) {
    state_.steps().End(pushed);
  }
  return pushed;
}

}  // namespace parasol
