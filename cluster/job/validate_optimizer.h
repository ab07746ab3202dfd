#ifndef PARASOL_CLUSTER_JOB_VALIDATE_OPTIMIZER_H_
#define PARASOL_CLUSTER_JOB_VALIDATE_OPTIMIZER_H_

#include "base/faults.h"
#include "ml/model/graph.h"
#include "proto/job.pb.h"

namespace parasol {

// Checks an optimizer of variables, a job's or a layer's, with its schedule,
// clipping and average. Names each number that is at fault, as "optimizer:
// adam.beta_1 is 1.5; …".
Faults ValidateOptimizer(const job::Optimizer& optimizer);
// Does the same for the optimizer of a table's rows.
Faults ValidateRowOptimizer(const job::Optimizer& optimizer);

// Checks the optimizers of the job's layers, and that each variable's name says
// which layer it is of. `graph` is null if it is not known.
Faults ValidateLayerOptimizers(const job::Job& job, const Graph* graph);

// Checks parameter_server.local_steps and the optimizers of a job that has it,
// under the names that they have in the user's file. `graph` is null if it is
// not known.
Faults ValidateLocalSteps(const job::Job& job, const Graph* graph);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_JOB_VALIDATE_OPTIMIZER_H_
