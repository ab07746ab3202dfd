#ifndef PARASOL_ML_LAYER_CONCATENATE_H_
#define PARASOL_ML_LAYER_CONCATENATE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/layer/layer.h"
#include "ml/layer/layer_kind.h"
#include "proto/job.pb.h"

namespace parasol {

// The inputs one after another along spec.axis(). All other axes are equal.
//   InvalidArgument  they are not equal, there is no such axis, or an input is
//                    not dense.
absl::StatusOr<std::unique_ptr<const Layer>> MakeConcatenate(
    const job::Concatenate& spec, absl::Span<const LayerInput> inputs);

// The kind "concatenate" of a job's layers.
extern const LayerKind kConcatenateKind;

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_CONCATENATE_H_
