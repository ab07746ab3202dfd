#ifndef PARASOL_ML_LAYER_DENSE_H_
#define PARASOL_ML_LAYER_DENSE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/layer/layer.h"
#include "ml/layer/layer_kind.h"
#include "proto/job.pb.h"

namespace parasol {

// The layer y = activation(x · kernel + bias) for one input [k]. Variables are
// kernel [k, units] (glorot_uniform by default) and bias [units] (zeros).
//   InvalidArgument  the spec does not fit the input: says why.
absl::StatusOr<std::unique_ptr<const Layer>> MakeDense(
    const job::Dense& spec, absl::Span<const LayerInput> inputs);

// The kind "dense" of a job's layers.
extern const LayerKind kDenseKind;

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_DENSE_H_
