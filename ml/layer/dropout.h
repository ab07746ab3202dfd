#ifndef PARASOL_ML_LAYER_DROPOUT_H_
#define PARASOL_ML_LAYER_DROPOUT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/layer/layer.h"
#include "proto/job.pb.h"

namespace parasol {

// y = x in evaluation. In training each element is 0 with probability
// spec.rate(), otherwise x / (1 - rate): by the pass's seed
// (ml/kernel/dropout.h), so that nothing is kept for the backward pass.
//   InvalidArgument  rate is not in [0, 1), or it has not one dense input.
absl::StatusOr<std::unique_ptr<const Layer>> MakeDropout(
    const job::Dropout& spec, absl::Span<const LayerInput> inputs);

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_DROPOUT_H_
