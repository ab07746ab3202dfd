#ifndef PARASOL_ML_LAYER_INTERACTION_WEIGHTED_SUM_H_
#define PARASOL_ML_LAYER_INTERACTION_WEIGHTED_SUM_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/layer/layer.h"
#include "ml/layer/layer_kind.h"

namespace parasol {

// The sum over n of w[n] · x[n], for inputs w [n] and x [n, width]: [width].
// With a softmax for w it is the gate of a mixture of experts.
//   InvalidArgument  the inputs are not two tensors of these shapes.
absl::StatusOr<std::unique_ptr<const Layer>> MakeWeightedSum(
    absl::Span<const LayerInput> inputs);

// The kind "weighted_sum" of a job's layers.
extern const LayerKind kWeightedSumKind;

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_INTERACTION_WEIGHTED_SUM_H_
