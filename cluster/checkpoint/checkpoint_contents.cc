#include "cluster/checkpoint/checkpoint_contents.h"

#include <memory>
#include <string>

#include "base/status_macros.h"
#include "ml/optimizer/assigned/optimizer_of.h"
#include "ml/optimizer/assigned/plain_subtraction.h"
#include "ml/optimizer/optimizer.h"

namespace parasol {

void CheckpointContents::AddTo(durable::CheckpointManifest& manifest) const {
  for (const auto& variable : variables) *manifest.add_variable() = variable;
  for (const auto& table : tables) *manifest.add_table() = table;
}

absl::StatusOr<CheckpointContents> ContentsOf(
    const std::vector<VariableSpec>& variables, const job::Job& job) {
  ASSIGN_OR_RETURN(const std::unique_ptr<const Optimizer> of_trained,
                   MakeVariableOptimizer(job.optimizer()));
  ASSIGN_OR_RETURN(const std::unique_ptr<const Optimizer> of_others,
                   MakeOptimizer(PlainSubtraction()));
  CheckpointContents contents;
  for (const VariableSpec& variable : variables) {
    const Optimizer& optimizer = variable.trained ? *of_trained : *of_others;
    const std::vector<std::string>& slots = optimizer.slot_names();
    durable::CheckpointVariable& entry = contents.variables.emplace_back();
    entry.set_name(variable.name);
    entry.mutable_shape()->Assign(variable.shape.begin(), variable.shape.end());
    entry.mutable_slot()->Assign(slots.begin(), slots.end());
  }
  for (const job::SparseTable& table : job.model().sparse_table()) {
    ASSIGN_OR_RETURN(const std::unique_ptr<const Optimizer> optimizer,
                     MakeOptimizer(RowOptimizerOf(table, job)),
                     _ << "table " << table.name());
    const std::vector<std::string>& slots = optimizer->slot_names();
    durable::CheckpointTable& entry = contents.tables.emplace_back();
    entry.set_name(table.name());
    entry.set_width(table.width());
    entry.mutable_slot()->Assign(slots.begin(), slots.end());
  }
  return contents;
}

}  // namespace parasol
