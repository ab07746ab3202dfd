#ifndef PARASOL_WORKER_GROUP_GATHERED_ROWS_H_
#define PARASOL_WORKER_GROUP_GATHERED_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cluster/replica_sum/row_accumulator.h"
#include "worker/group/group_rows.h"
#include "worker/group/step_gradients.h"

namespace parasol {

// Rows of tables that each worker has: every worker gathers all gradients, and
// applies their means.
class GatheredRows : public GroupRows {
 public:
  // `widths`: of each table. `replicas`: all of the job. Borrows `gradients`,
  // which this worker's replicas have pushed.
  GatheredRows(const std::vector<size_t>& widths, int replicas,
               const StepGradients& gradients);

  std::unique_ptr<TrainingParameters::Pending> Pull(
      const TrainingParameters::PullRequest&) override {
    return nullptr;
  }
  void Take(TrainingParameters::PushRequest&) override {}
  bool HasDropped(const TrainingParameters::SyncStep&) const override {
    return false;
  }
  void AddTo(TrainingParameters::Awaited&) const override {}
  void Stop() override {}
  void Begin(GroupRun&, int64_t) override {}
  absl::Status Leave(GroupRun& run, int64_t step) override;
  // Ends the group on all ranks if the rows that were gathered are none.
  absl::Status Await(GroupRun& run, int64_t step) override;
  absl::Status Apply(ParameterStore& parameters) override;
  std::optional<Made> made() const override { return std::nullopt; }

 private:
  struct Table {
    size_t width = 0;
    std::vector<std::string> rows = {};  // one element for each worker
    std::unique_ptr<RowAccumulator> sums;
  };

  const int replicas_;
  const StepGradients& gradients_;
  std::vector<Table> tables_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_GROUP_GATHERED_ROWS_H_
