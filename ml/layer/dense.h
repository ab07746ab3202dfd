#ifndef PARASOL_ML_LAYER_DENSE_H_
#define PARASOL_ML_LAYER_DENSE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/layer/layer.h"
#include "proto/job.pb.h"

namespace parasol {

// y = activation(x · kernel + bias) of one input [k]. Variables kernel
// [k, units] (glorot_uniform by default), bias [units] (zeros).
//   InvalidArgument  it does not fit the input: says why.
absl::StatusOr<std::unique_ptr<const Layer>> MakeDense(
    const job::Dense& spec, absl::Span<const LayerInput> inputs);

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_DENSE_H_
