#ifndef PARASOL_ML_LAYER_DROPOUT_H_
#define PARASOL_ML_LAYER_DROPOUT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/layer/layer.h"
#include "ml/layer/layer_kind.h"
#include "proto/job.pb.h"

namespace parasol {

// The layer y = x in evaluation. In training each element is 0 with probability
// spec.rate(), otherwise x / (1 - rate). The zeros follow from the pass's seed
// (ml/kernel/dropout.h), so nothing is kept for the backward pass.
//   InvalidArgument  rate is not in [0, 1), or the input is not one tensor.
absl::StatusOr<std::unique_ptr<const Layer>> MakeDropout(
    const job::Dropout& spec, absl::Span<const LayerInput> inputs);

// The kind "dropout" of a job's layers.
extern const LayerKind kDropoutKind;

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_DROPOUT_H_
