#ifndef PARASOL_ML_LOSS_HUBER_H_
#define PARASOL_ML_LOSS_HUBER_H_

#include "ml/loss/loss_kind.h"

namespace parasol {

// The mean over the outputs of Huber's loss, squared up to an error of `delta`
// and linear beyond; a label is one number per output.
extern const LossKind kHuberKind;

}  // namespace parasol

#endif  // PARASOL_ML_LOSS_HUBER_H_
