#ifndef PARASOL_ML_LAYER_MULTIPLY_H_
#define PARASOL_ML_LAYER_MULTIPLY_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/layer/layer.h"
#include "ml/layer/layer_kind.h"

namespace parasol {

// The product of its inputs, element by element, all of one shape.
//   InvalidArgument  there are fewer than two inputs, one is not dense, or
//                    their shapes differ.
absl::StatusOr<std::unique_ptr<const Layer>> MakeMultiply(
    absl::Span<const LayerInput> inputs);

// The kind "multiply" of a job's layers.
extern const LayerKind kMultiplyKind;

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_MULTIPLY_H_
