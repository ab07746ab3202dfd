#ifndef PARASOL_ML_LOSS_PAIRWISE_LOGISTIC_H_
#define PARASOL_ML_LOSS_PAIRWISE_LOGISTIC_H_

#include "ml/loss/loss_kind.h"

namespace parasol {

// The mean of log(1 + exp(other score - own score)) over the examples of the
// batch that have a lower label, and the same value of the column `group` if
// that is set; 0 if there is none. An example that does not count is in no
// pair. A label is a number, and an output a score. Bayesian personalized
// ranking: Rendle et al., "BPR: Bayesian Personalized Ranking from Implicit
// Feedback", 2009, with all pairs of a batch in place of drawn ones.
extern const LossKind kPairwiseLogisticKind;

}  // namespace parasol

#endif  // PARASOL_ML_LOSS_PAIRWISE_LOGISTIC_H_
