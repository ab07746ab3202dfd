#ifndef PARASOL_WORKER_MIRRORED_PUSHED_ROWS_H_
#define PARASOL_WORKER_MIRRORED_PUSHED_ROWS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "worker/mirrored/group_rows.h"
#include "worker/mirrored/mirrored_state.h"
#include "worker/mirrored/table_pushes.h"

namespace parasol {

// Rows of tables that ps have: each worker pushes the gradients of its own
// replicas. If tables are in step, gradients leave when all ranks have begun
// the step, and have so made the one before (TablePushes), and the variables'
// step is made when the ps have made the tables' and all ranks know it.
class PushedRows : public GroupRows {
 public:
  // Borrows both. `state` ends if this worker's pushes fail.
  PushedRows(TablePushes& pushes, MirroredState& state)
      : pushes_(pushes), state_(state) {}

  // Finds out, with tables in step, when all ranks have begun the step.
  void Begin(GroupRun& run, int64_t step) override ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Leave(GroupRun& run, int64_t step) override
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Await(GroupRun& run, int64_t step) override;
  absl::Status Apply(LocalParameters&) override { return absl::OkStatus(); }
  std::optional<Made> made() const override { return made_; }
  void Stop() override { pushes_.Stop(); }

 private:
  // Ends the worker if its pushes to ps have failed; returns `pushed`.
  absl::Status EndIfNotDone(GroupRun& run, const absl::Status& pushed);

  TablePushes& pushes_;
  MirroredState& state_;
  std::optional<Made> made_;
  std::vector<std::string> nothing_;  // answers to Begin()

  absl::Mutex mu_;
  // The last step of which Begin() has heard that all have begun it.
  int64_t all_began_ ABSL_GUARDED_BY(mu_) = -1;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_MIRRORED_PUSHED_ROWS_H_
