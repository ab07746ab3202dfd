#ifndef PARASOL_ML_LAYER_KINDS_LAYER_KINDS_H_
#define PARASOL_ML_LAYER_KINDS_LAYER_KINDS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/layer/layer.h"
#include "ml/layer/layer_kind.h"
#include "proto/job.pb.h"

namespace parasol {

// Returns all kinds of layers, each once.
absl::Span<const LayerKind* const> LayerKinds();

// Returns the kind of `layer`; null if it has none.
const LayerKind* KindOf(const job::Layer& layer);

// Returns the name of the layer's kind in a job file: "conv2d". Empty if it has
// none.
std::string KindNameOf(const job::Layer& layer);

// Returns the layer that `spec` describes, for these inputs. Fields that are
// not set have their defaults. `table_width` is the width of the sparse table
// that the layer reads; 0 if it reads none.
//   InvalidArgument  the spec does not fit the inputs: says why, without the
//                    layer's name.
absl::StatusOr<std::unique_ptr<const Layer>> MakeLayer(
    const job::Layer& spec, absl::Span<const LayerInput> inputs,
    int64_t table_width);

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_KINDS_LAYER_KINDS_H_
