#ifndef PARASOL_ML_LOSS_CHECK_LABELS_H_
#define PARASOL_ML_LOSS_CHECK_LABELS_H_

#include "absl/status/status.h"
#include "ml/input/feature/batch.h"
#include "ml/loss/loss_spec.h"

namespace parasol {

// Checks that each label of the batch has the form that `loss` asks for:
// classes, that is integers from 0 to the number of outputs - 1; probabilities
// that add up to 1; numbers from 0 to 1; or finite numbers.
//   InvalidArgument  the batch has another number of labels, or a label without
//                    a meaning: names the example and the value.
absl::Status CheckLabels(const LossSpec& loss, const Batch& batch);

}  // namespace parasol

#endif  // PARASOL_ML_LOSS_CHECK_LABELS_H_
