#ifndef PARASOL_ML_LAYER_FACTORIZATION_MACHINE_H_
#define PARASOL_ML_LAYER_FACTORIZATION_MACHINE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/layer/layer.h"

namespace parasol {

// Of x [fields, width], the sum of x[f] · x[g] over all pairs of fields: [1].
//   InvalidArgument  its input is not one of two axes.
absl::StatusOr<std::unique_ptr<const Layer>> MakeFactorizationMachine(
    absl::Span<const LayerInput> inputs);

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_FACTORIZATION_MACHINE_H_
