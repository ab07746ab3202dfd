#ifndef PARASOL_ML_LOSS_MEAN_ABSOLUTE_ERROR_H_
#define PARASOL_ML_LOSS_MEAN_ABSOLUTE_ERROR_H_

#include "ml/loss/loss_kind.h"

namespace parasol {

// The mean over the outputs of |output - label|; a label is one number per
// output.
extern const LossKind kMeanAbsoluteErrorKind;

}  // namespace parasol

#endif  // PARASOL_ML_LOSS_MEAN_ABSOLUTE_ERROR_H_
