#ifndef PARASOL_ML_LOSS_LOSS_SPEC_H_
#define PARASOL_ML_LOSS_LOSS_SPEC_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "proto/job.pb.h"

namespace parasol {

// A job's loss together with properties of its model. Needs no device.
struct LossSpec {
  job::Loss::KindCase kind = job::Loss::KIND_NOT_SET;
  double label_smoothing = 0;
  int64_t outputs = 0;      // the model's, for one example
  int64_t label_width = 0;  // labels of one example: 1 for a class number
};

// Resolves `loss` for a model that has `outputs` outputs for one example.
//   InvalidArgument  no kind is chosen, label_smoothing is not in [0, 1), or
//                    the loss does not allow this number of outputs: names it.
absl::StatusOr<LossSpec> ResolveLoss(const job::Loss& loss, int64_t outputs);

}  // namespace parasol

#endif  // PARASOL_ML_LOSS_LOSS_SPEC_H_
