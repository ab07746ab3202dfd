#ifndef PARASOL_ML_OPTIMIZER_EXPONENTIAL_DECAY_H_
#define PARASOL_ML_OPTIMIZER_EXPONENTIAL_DECAY_H_

#include "ml/optimizer/schedule_kind.h"

namespace parasol {

// The rate initial · decay_rate^(step / decay_steps); in whole steps with
// staircase, which is false by default.
extern const ScheduleKind kExponentialDecayKind;

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_EXPONENTIAL_DECAY_H_
