#ifndef PARASOL_ML_OPTIMIZER_ASSIGNED_PLAIN_SUBTRACTION_H_
#define PARASOL_ML_OPTIMIZER_ASSIGNED_PLAIN_SUBTRACTION_H_

#include "proto/job.pb.h"

namespace parasol {

// Returns the optimizer for variables that are not trained (a batch
// normalization's moving statistics). It subtracts what is pushed for them as
// it is: SGD with learning rate 1, whatever the job's optimizer and schedule
// are.
job::Optimizer PlainSubtraction();

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_ASSIGNED_PLAIN_SUBTRACTION_H_
