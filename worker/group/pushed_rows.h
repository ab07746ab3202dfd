#ifndef PARASOL_WORKER_GROUP_PUSHED_ROWS_H_
#define PARASOL_WORKER_GROUP_PUSHED_ROWS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "parameters/training_parameters.h"
#include "worker/group/group_rows.h"
#include "worker/group/state/group_state.h"
#include "worker/group/table_pushes.h"

namespace parasol {

// Rows of tables that ps have: each worker pushes the gradients of its own
// replicas (TablePushes).
//
// Tables in step make the variables wait: a step of the variables is made when
// the ps have made the tables' and all ranks know it, never before. So tables
// are as far as the variables of any worker, or one step further, and then
// still have the rows before it. Rows of tables that are not in step are those
// that the ps have now.
class PushedRows : public GroupRows {
 public:
  struct Options {
    // Parameters without variables, of the job's tables in their order.
    std::shared_ptr<TrainingParameters> tables;
    bool in_step = false;
    // Called now and then by who waits for rows:
    // GroupMember::AbortIfStopping().
    std::function<void()> abort_if_stopping;
  };

  // Borrows `state`, which ends if this worker's pushes fail, and `clock`.
  PushedRows(Options options, GroupState& state, Clock& clock);

  std::unique_ptr<TrainingParameters::Pending> Pull(
      const TrainingParameters::PullRequest& request) override;
  void Take(TrainingParameters::PushRequest& request) override;
  bool HasDropped(const TrainingParameters::SyncStep& step) const override {
    return pushes_.HasDropped(step);
  }
  // Adds the ps that owe an answer; while rows are waited for, they are the
  // only ones. Gradients of a step that a new ps lacks are pushed again only if
  // it counts them once: there are no moves otherwise.
  void AddTo(TrainingParameters::Awaited& awaited) const override;
  void Stop() override { pushes_.Stop(); }

  // Finds out, with tables in step, when all ranks have begun the step.
  void Begin(GroupRun& run, int64_t step) override ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Leave(GroupRun& run, int64_t step) override
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Await(GroupRun& run, int64_t step) override;
  absl::Status Apply(ParameterStore&) override { return absl::OkStatus(); }
  std::optional<Made> made() const override { return made_; }

 private:
  class RowPull;

  // Ends the worker if its pushes to ps have failed; returns `pushed`.
  absl::Status EndIfNotDone(GroupRun& run, const absl::Status& pushed);

  const Options options_;
  TablePushes pushes_;
  GroupState& state_;
  // The pull of rows that was last waited for in vain; null: none.
  std::atomic<const RowPull*> awaited_rows_ = nullptr;
  std::optional<Made> made_;
  std::vector<std::string> nothing_;  // answers to Begin()

  absl::Mutex mu_;
  // The last step of which Begin() has heard that all have begun it.
  int64_t all_began_ ABSL_GUARDED_BY(mu_) = -1;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_GROUP_PUSHED_ROWS_H_
