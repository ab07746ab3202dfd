#ifndef PARASOL_ML_OPTIMIZER_COSINE_DECAY_H_
#define PARASOL_ML_OPTIMIZER_COSINE_DECAY_H_

#include "ml/optimizer/schedule_kind.h"

namespace parasol {

// The rate initial · ((1 - alpha) · (1 + cos(π · step / decay_steps)) / 2 +
// alpha), which stays at initial · alpha from decay_steps on; alpha is 0 by
// default.
extern const ScheduleKind kCosineDecayKind;

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_COSINE_DECAY_H_
