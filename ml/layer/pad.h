#ifndef PARASOL_ML_LAYER_PAD_H_
#define PARASOL_ML_LAYER_PAD_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/layer/layer.h"
#include "proto/job.pb.h"

namespace parasol {

// Zeros around each example.
//   InvalidArgument  not as many numbers as axes, a number is negative, or the
//                    input is not one tensor.
absl::StatusOr<std::unique_ptr<const Layer>> MakePad(
    const job::Pad& spec, absl::Span<const LayerInput> inputs);

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_PAD_H_
