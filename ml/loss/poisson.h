#ifndef PARASOL_ML_LOSS_POISSON_H_
#define PARASOL_ML_LOSS_POISSON_H_

#include "ml/loss/loss_kind.h"

namespace parasol {

// The mean over the outputs of output - label · log(output + 1e-7), the outputs
// being rates; a label is one count per output.
extern const LossKind kPoissonKind;

}  // namespace parasol

#endif  // PARASOL_ML_LOSS_POISSON_H_
