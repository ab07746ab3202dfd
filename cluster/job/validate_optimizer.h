#ifndef PARASOL_CLUSTER_JOB_VALIDATE_OPTIMIZER_H_
#define PARASOL_CLUSTER_JOB_VALIDATE_OPTIMIZER_H_

#include "base/faults.h"
#include "proto/job.pb.h"

namespace parasol {

// Checks an optimizer, of a job, a layer or a table, with its schedule,
// clipping and average. Names each number that is at fault, as "optimizer:
// adam.beta_1 is 1.5; …".
Faults ValidateOptimizer(const job::Optimizer& optimizer);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_JOB_VALIDATE_OPTIMIZER_H_
