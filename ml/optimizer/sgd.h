#ifndef PARASOL_ML_OPTIMIZER_SGD_H_
#define PARASOL_ML_OPTIMIZER_SGD_H_

#include <memory>

#include "absl/status/statusor.h"
#include "ml/optimizer/optimizer.h"
#include "proto/job.pb.h"

namespace parasol {

// Stochastic gradient descent: w -= lr·g.
//
// Momentum m needs one slot "momentum":  a = m·a - lr·g;  w += a,
// or, if Nesterov's,                     w += m·a - lr·g.
//   InvalidArgument  learning_rate negative, momentum outside [0, 1].
absl::StatusOr<std::unique_ptr<const Optimizer>> MakeSgd(
    const job::Sgd& spec, const job::LearningRateSchedule& schedule);

// Sets unset fields to learning_rate .01, momentum 0, not Nesterov's.
void FillDefaults(job::Sgd& spec);

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_SGD_H_
