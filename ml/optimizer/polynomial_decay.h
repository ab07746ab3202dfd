#ifndef PARASOL_ML_OPTIMIZER_POLYNOMIAL_DECAY_H_
#define PARASOL_ML_OPTIMIZER_POLYNOMIAL_DECAY_H_

#include "ml/optimizer/schedule_kind.h"

namespace parasol {

// The rate (initial - end) · (1 - step / decay_steps)^power + end, end reached
// at decay_steps; with cycle the decay goes on to the next multiple of
// decay_steps. Defaults: end_learning_rate .0001, power 1, no cycle.
extern const ScheduleKind kPolynomialDecayKind;

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_POLYNOMIAL_DECAY_H_
