#ifndef PARASOL_ML_LOSS_BINARY_FOCAL_CROSSENTROPY_H_
#define PARASOL_ML_LOSS_BINARY_FOCAL_CROSSENTROPY_H_

#include "ml/loss/loss_kind.h"

namespace parasol {

// Binary cross-entropy in which an output counts the less the better it is: by
// (1 - p)^gamma, p being the probability that it gives to its label; a label is
// one probability per output.
extern const LossKind kBinaryFocalCrossentropyKind;

}  // namespace parasol

#endif  // PARASOL_ML_LOSS_BINARY_FOCAL_CROSSENTROPY_H_
