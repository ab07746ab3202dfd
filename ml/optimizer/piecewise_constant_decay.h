#ifndef PARASOL_ML_OPTIMIZER_PIECEWISE_CONSTANT_DECAY_H_
#define PARASOL_ML_OPTIMIZER_PIECEWISE_CONSTANT_DECAY_H_

#include "ml/optimizer/schedule_kind.h"

namespace parasol {

// The initial rate up to and with the first boundary, then the value after each
// boundary.
extern const ScheduleKind kPiecewiseConstantDecayKind;

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_PIECEWISE_CONSTANT_DECAY_H_
