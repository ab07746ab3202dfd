#ifndef PARASOL_ML_LAYER_MAKE_LAYER_H_
#define PARASOL_ML_LAYER_MAKE_LAYER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/layer/layer.h"
#include "proto/job.pb.h"

namespace parasol {

// Returns the layer that `spec` describes, for these inputs. Fields that are
// not set have their defaults. `table_width` is the width of the sparse table
// that the layer reads; 0 if it reads none.
//   InvalidArgument  the spec does not fit the inputs: says why, without the
//                    layer's name.
absl::StatusOr<std::unique_ptr<const Layer>> MakeLayer(
    const job::Layer& spec, absl::Span<const LayerInput> inputs,
    int64_t table_width);

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_MAKE_LAYER_H_
