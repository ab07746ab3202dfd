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
//
// Delayed Nesterov (arXiv 2401.09135, algorithm 3 with c = 0) of delay n needs
// a second slot "gathered", s. An update that is not the last of n:
//   s += g;  w -= lr/n·g,
// and the last one:
//   a = m·a - lr/n·(s + g);  s = 0;  w += m·a - lr/n·g.
//   InvalidArgument  learning_rate negative, momentum outside [0, 1]; delay
//                    below 1, or above 1 without Nesterov's momentum.
absl::StatusOr<std::unique_ptr<const Optimizer>> MakeSgd(
    const job::Sgd& spec, const job::LearningRateSchedule& schedule);

// Sets unset fields to learning_rate .01, momentum 0, not Nesterov's.
void FillDefaults(job::Sgd& spec);

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_SGD_H_
