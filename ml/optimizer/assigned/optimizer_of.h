#ifndef PARASOL_ML_OPTIMIZER_ASSIGNED_OPTIMIZER_OF_H_
#define PARASOL_ML_OPTIMIZER_ASSIGNED_OPTIMIZER_OF_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ml/optimizer/optimizer.h"
#include "proto/job.pb.h"

// The optimizers of a job's variables and tables, made of the job's.
namespace parasol {

// Returns `spec` with all its rates times `factor`: the learning rate, and what
// its schedule has of rates. A factor of 1 changes nothing.
job::Optimizer WithRateTimes(double factor, job::Optimizer spec);

// The type of custom layers that have the variables of a program with a loop of
// its own. A variable's name does not begin with the layer's there.
inline constexpr absl::string_view kProgramLayer = "parasol.program";

// Returns the optimizer of the job's variable of that name, "layer/kernel": its
// layer's own, or else the job's. The layers have their names. `job` must
// outlive the result.
const job::Optimizer& OptimizerOfVariable(absl::string_view variable,
                                          const job::Job& job);

// Returns the optimizer `of_job` as it is for the trained variable of this
// name, with its factor of the learning rate. Variables with equal ones can
// share an optimizer.
job::Optimizer VariableOptimizerOf(const job::Optimizer& of_job,
                                   absl::string_view variable,
                                   double multiplier);

// Returns the optimizer of variables that are trained: the job's, or their own,
// with their factor of the learning rate and with the moving average, if it has
// one.
//   InvalidArgument  as for MakeOptimizer() and CheckEma(), or the optimizer is
//                    for tables alone.
absl::StatusOr<std::unique_ptr<const Optimizer>> MakeVariableOptimizer(
    const job::Optimizer& of_job, double multiplier = 1);

// Returns the optimizer of a table's rows, which have no average: the table's
// own, or the job's, with the table's factor of the learning rate;
// PlainSubtraction() if the table is not trainable.
job::Optimizer RowOptimizerOf(const job::SparseTable& table,
                              const job::Job& job);

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_ASSIGNED_OPTIMIZER_OF_H_
