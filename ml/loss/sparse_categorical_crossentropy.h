#ifndef PARASOL_ML_LOSS_SPARSE_CATEGORICAL_CROSSENTROPY_H_
#define PARASOL_ML_LOSS_SPARSE_CATEGORICAL_CROSSENTROPY_H_

#include "ml/loss/loss_kind.h"

namespace parasol {

// The cross-entropy of the softmax of the outputs; a label is a class number.
extern const LossKind kSparseCategoricalCrossentropyKind;

}  // namespace parasol

#endif  // PARASOL_ML_LOSS_SPARSE_CATEGORICAL_CROSSENTROPY_H_
