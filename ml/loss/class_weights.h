#ifndef PARASOL_ML_LOSS_CLASS_WEIGHTS_H_
#define PARASOL_ML_LOSS_CLASS_WEIGHTS_H_

#include <vector>

#include "absl/status/status.h"
#include "ml/input/feature/model_inputs.h"
#include "proto/job.pb.h"

namespace parasol {

// Checks loss.class_weight, for labels of this form.
//   InvalidArgument  labels are no classes, a class is not one of the model's,
//                    or listed twice, or a weight is not a number from 0:
//                    "loss.class_weight…".
absl::Status CheckClassWeights(const job::Loss& loss, const LabelForm& label);

// Returns the factor of each class, 1 for those that are not listed; nothing if
// none is listed. `loss` has passed the check.
std::vector<float> ClassWeightsOf(const job::Loss& loss);

}  // namespace parasol

#endif  // PARASOL_ML_LOSS_CLASS_WEIGHTS_H_
