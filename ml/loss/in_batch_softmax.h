#ifndef PARASOL_ML_LOSS_IN_BATCH_SOFTMAX_H_
#define PARASOL_ML_LOSS_IN_BATCH_SOFTMAX_H_

#include "ml/loss/loss_kind.h"

namespace parasol {

// The softmax cross-entropy of an example's own candidate among the candidates
// of its batch. An example's outputs [2, width] are the vectors q of its query
// and c of its candidate; the logit of example i and candidate j is
//   q[i] · c[j] / temperature - log(probability of candidate j).
// With the column `candidate`, candidates with the id of the example's own, but
// this one itself, are left out. So are the candidates of examples that do not
// count. There is no label. Yi et al., "Sampling-Bias-Corrected Neural Modeling
// for Large Corpus Item Recommendations", 2019.
extern const LossKind kInBatchSoftmaxKind;

}  // namespace parasol

#endif  // PARASOL_ML_LOSS_IN_BATCH_SOFTMAX_H_
