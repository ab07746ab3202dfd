#include "cluster/checkpoint/checkpoint_contents.h"

#include <string>
#include <utility>

#include "base/status_macros.h"
#include "cluster/rows/row_form.h"
#include "ml/optimizer/assigned/optimizer_of.h"
#include "ml/optimizer/assigned/plain_subtraction.h"

namespace parasol {

void CheckpointContents::AddTo(durable::CheckpointManifest& manifest) const {
  for (const auto& variable : variables) *manifest.add_variable() = variable;
  for (const auto& table : tables) *manifest.add_table() = table;
}

absl::StatusOr<std::unique_ptr<const Optimizer>> MakeOptimizerOf(
    const VariableSpec& variable, const job::Job& job) {
  if (!variable.trained) return MakeOptimizer(PlainSubtraction());
  ASSIGN_OR_RETURN(
      std::unique_ptr<const Optimizer> optimizer,
      MakeVariableOptimizer(OptimizerOfVariable(variable.name, job),
                            variable.learning_rate_multiplier),
      _ << variable.name);
  return optimizer;
}

absl::StatusOr<CheckpointContents> ContentsOf(
    const std::vector<VariableSpec>& variables, const job::Job& job) {
  CheckpointContents contents;
  for (const VariableSpec& variable : variables) {
    ASSIGN_OR_RETURN(const std::unique_ptr<const Optimizer> optimizer,
                     MakeOptimizerOf(variable, job));
    const std::vector<std::string>& slots = optimizer->slot_names();
    durable::CheckpointVariable& entry = contents.variables.emplace_back();
    entry.set_name(variable.name);
    entry.mutable_shape()->Assign(variable.shape.begin(), variable.shape.end());
    entry.mutable_slot()->Assign(slots.begin(), slots.end());
  }
  for (const job::SparseTable& table : job.model().sparse_table()) {
    ASSIGN_OR_RETURN(const std::unique_ptr<const Optimizer> optimizer,
                     MakeOptimizer(RowOptimizerOf(table, job)),
                     _ << "table " << table.name());
    contents.tables.push_back(RowForm(table.name(), table.width(), *optimizer));
  }
  return contents;
}

}  // namespace parasol
