#ifndef PARASOL_ML_LOSS_HINGE_H_
#define PARASOL_ML_LOSS_HINGE_H_

#include "ml/loss/loss_kind.h"

namespace parasol {

// The mean over the outputs of max(0, 1 - (2 · label - 1) · output); a label is
// one number per output, 0 or 1.
extern const LossKind kHingeKind;

}  // namespace parasol

#endif  // PARASOL_ML_LOSS_HINGE_H_
