#ifndef PARASOL_ML_LOSS_BINARY_CROSSENTROPY_H_
#define PARASOL_ML_LOSS_BINARY_CROSSENTROPY_H_

#include "ml/loss/loss_kind.h"

namespace parasol {

// The mean over the outputs of the cross-entropy of each output's sigmoid; a
// label is one probability per output.
extern const LossKind kBinaryCrossentropyKind;

}  // namespace parasol

#endif  // PARASOL_ML_LOSS_BINARY_CROSSENTROPY_H_
