#include "worker/group/gathered_rows.h"

#include "base/status_macros.h"
#include "worker/group/encoded_rows.h"

namespace parasol {

GatheredRows::GatheredRows(const std::vector<size_t>& widths, int replicas,
                           const StepGradients& gradients)
    : replicas_(replicas), gradients_(gradients) {
  for (const size_t width : widths) {
    tables_.push_back(
        {.width = width,
         .sums = std::make_unique<RowAccumulator>(width, /*memory=*/nullptr)});
  }
}

absl::Status GatheredRows::Leave(GroupRun& run, int64_t step) {
  const std::vector<int>& replicas = run.group().replicas;
  for (size_t table = 0; table < tables_.size(); ++table) {
    RETURN_IF_ERROR(run.AwaitOwn(
        [&] { return gradients_.HasRows(step, table, replicas); }));
    run.collective().AllGather(gradients_.RowsOf(table, replicas),
                               &tables_[table].rows, run.Count());
    if ((table + 1) % (Collective::kMaxPending / 2) == 0) {
      RETURN_IF_ERROR(run.collective().Await());
    }
  }
  return absl::OkStatus();
}

// Before the step is made: a step is not made in part, and another connection
// may bring them whole.
absl::Status GatheredRows::Await(GroupRun& run, int64_t step) {
  for (const Table& table : tables_) {
    const absl::Status right = CheckRows(table.rows, table.width, replicas_);
    if (right.ok()) continue;
    run.collective().Abort(absl::UnavailableError(right.message()));
    return run.collective().status();
  }
  return absl::OkStatus();
}

absl::Status GatheredRows::Apply(ParameterStore& parameters) {
  for (size_t i = 0; i < tables_.size(); ++i) {
    Table& table = tables_[i];
    ASSIGN_OR_RETURN(
        const RowGradients means,
        MeansOfRows(table.rows, table.width, replicas_, *table.sums));
    RETURN_IF_ERROR(
        parameters.ApplyRows(i, means.ids, means.values, means.counts));
  }
  return absl::OkStatus();
}

}  // namespace parasol
