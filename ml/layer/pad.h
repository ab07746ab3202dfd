#ifndef PARASOL_ML_LAYER_PAD_H_
#define PARASOL_ML_LAYER_PAD_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/layer/layer.h"
#include "ml/layer/layer_kind.h"
#include "proto/job.pb.h"

namespace parasol {

// The input with zeros around each example.
//   InvalidArgument  the spec has more or fewer numbers than axes, a number is
//                    negative, or the input is not one tensor.
absl::StatusOr<std::unique_ptr<const Layer>> MakePad(
    const job::Pad& spec, absl::Span<const LayerInput> inputs);

// The kind "pad" of a job's layers.
extern const LayerKind kPadKind;

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_PAD_H_
