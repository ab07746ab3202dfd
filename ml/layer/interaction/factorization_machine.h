#ifndef PARASOL_ML_LAYER_INTERACTION_FACTORIZATION_MACHINE_H_
#define PARASOL_ML_LAYER_INTERACTION_FACTORIZATION_MACHINE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/layer/layer.h"
#include "ml/layer/layer_kind.h"

namespace parasol {

// The sum of x[f] · x[g] over all pairs of fields of its input x [fields,
// width]: [1].
//   InvalidArgument  the input is not one tensor of two axes.
absl::StatusOr<std::unique_ptr<const Layer>> MakeFactorizationMachine(
    absl::Span<const LayerInput> inputs);

// The kind "factorization_machine" of a job's layers.
extern const LayerKind kFactorizationMachineKind;

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_INTERACTION_FACTORIZATION_MACHINE_H_
