#ifndef PARASOL_CLUSTER_JOB_LEARNING_RATE_FIELD_H_
#define PARASOL_CLUSTER_JOB_LEARNING_RATE_FIELD_H_

#include "proto/job.pb.h"

namespace parasol {

// The field `learning_rate`, which the message of every kind of optimizer has.
// The optimizer's kind is set.

double InitialLearningRate(const job::Optimizer& optimizer);
void SetInitialLearningRate(double rate, job::Optimizer& optimizer);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_JOB_LEARNING_RATE_FIELD_H_
