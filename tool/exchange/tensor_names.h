#ifndef PARASOL_TOOL_EXCHANGE_TENSOR_NAMES_H_
#define PARASOL_TOOL_EXCHANGE_TENSOR_NAMES_H_

#include <string>

#include "absl/strings/string_view.h"
#include "proto/job.pb.h"

// The names of a model's tensors in files of other programs: Keras's, with its
// optimizer_v2. A variable's value has the variable's name, "hidden/kernel".
namespace parasol {

inline constexpr absl::string_view kGlobalStepName = "global_step";

// Returns Keras's name of the optimizer: "Adam".
std::string KerasNameOf(const job::Optimizer& optimizer);

// Returns an optimizer's name without what Keras 3 makes of it in a program:
// "adamw" of "AdamW" and of "adam_w_1", the second one there.
std::string PlainOptimizer(absl::string_view name);

// Returns the optimizer of a table: its own, or the job's.
const job::Optimizer& OptimizerOf(const job::SparseTable& table,
                                  const job::Job& job);
// Returns the optimizer of the table of that name; the job's if there is none.
const job::Optimizer& OptimizerOfTable(absl::string_view table,
                                       const job::Job& job);

// Returns "Adam/iter".
std::string IterationsName(const job::Optimizer& optimizer);
// Returns "Adam/hidden/kernel/m".
std::string SlotName(const job::Optimizer& optimizer,
                     absl::string_view variable, absl::string_view slot);
// Return "users/ids" and "users/rows".
std::string IdsName(absl::string_view table);
std::string RowsName(absl::string_view table);

}  // namespace parasol

#endif  // PARASOL_TOOL_EXCHANGE_TENSOR_NAMES_H_
