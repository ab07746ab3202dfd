#ifndef PARASOL_ML_LOSS_CHECK_LABELS_H_
#define PARASOL_ML_LOSS_CHECK_LABELS_H_

#include "absl/status/status.h"
#include "ml/input/feature/batch.h"
#include "ml/loss/loss_spec.h"

namespace parasol {

// Whether the batch has labels that `loss` has a meaning for: classes, that is
// integers from 0 to the number of outputs; probabilities that add up to 1;
// numbers from 0 to 1; finite numbers.
//   InvalidArgument  it has another number of labels, or one that is none:
//                    names the example and the value.
absl::Status CheckLabels(const LossSpec& loss, const Batch& batch);

}  // namespace parasol

#endif  // PARASOL_ML_LOSS_CHECK_LABELS_H_
