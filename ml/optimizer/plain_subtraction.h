#ifndef PARASOL_ML_OPTIMIZER_PLAIN_SUBTRACTION_H_
#define PARASOL_ML_OPTIMIZER_PLAIN_SUBTRACTION_H_

#include "proto/job.pb.h"

namespace parasol {

// What variables that are not trained are updated with (a batch normalization's
// moving statistics): what is pushed for them is subtracted as it is, by SGD
// with the learning rate 1 whatever the job's optimizer and schedule are.
job::Optimizer PlainSubtraction();

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_PLAIN_SUBTRACTION_H_
