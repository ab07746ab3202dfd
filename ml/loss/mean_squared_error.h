#ifndef PARASOL_ML_LOSS_MEAN_SQUARED_ERROR_H_
#define PARASOL_ML_LOSS_MEAN_SQUARED_ERROR_H_

#include "ml/loss/loss_kind.h"

namespace parasol {

// The mean over the outputs of (output - label)²; a label is one number per
// output.
extern const LossKind kMeanSquaredErrorKind;

}  // namespace parasol

#endif  // PARASOL_ML_LOSS_MEAN_SQUARED_ERROR_H_
