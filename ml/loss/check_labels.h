#ifndef PARASOL_ML_LOSS_CHECK_LABELS_H_
#define PARASOL_ML_LOSS_CHECK_LABELS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ml/loss/loss_spec.h"

namespace parasol {

// Checks that each label of `examples` examples has the form that `loss` asks
// for: classes, that is integers from 0 to the number of outputs - 1;
// probabilities that add up to 1; numbers from 0 to 1; or finite numbers.
//   InvalidArgument  there is another number of labels, or a label without a
//                    meaning: names the example and the value.
absl::Status CheckLabels(const LossSpec& loss, int64_t examples,
                         absl::Span<const float> labels);

}  // namespace parasol

#endif  // PARASOL_ML_LOSS_CHECK_LABELS_H_
