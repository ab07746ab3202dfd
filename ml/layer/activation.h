#ifndef PARASOL_ML_LAYER_ACTIVATION_H_
#define PARASOL_ML_LAYER_ACTIVATION_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/layer/layer.h"
#include "ml/layer/layer_kind.h"
#include "proto/job.pb.h"

namespace parasol {

// The layer y = activation(x) for one input of any shape; a softmax is over the
// last axis. A linear activation is a view.
//   InvalidArgument  the activation does not fit the inputs: says why.
absl::StatusOr<std::unique_ptr<const Layer>> MakeActivation(
    job::Activation activation, absl::Span<const LayerInput> inputs);

// The kind "activation" of a job's layers.
extern const LayerKind kActivationKind;

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_ACTIVATION_H_
