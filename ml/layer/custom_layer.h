#ifndef PARASOL_ML_LAYER_CUSTOM_LAYER_H_
#define PARASOL_ML_LAYER_CUSTOM_LAYER_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ml/layer/layer.h"
#include "proto/job.pb.h"

// Layers that users write (docs/examples/custom_model). The job file declares a
// custom layer's output and variables, so that chief and launcher need nothing
// of the user's; the programs that compute, worker and evaluator, are linked
// with its code.
namespace parasol {

// Makes the layer for these inputs. Its output shape and the names and shapes
// of its variables must be those that `spec` declares; the variables'
// initializers are the declaration's.
//   InvalidArgument  the parameters or the inputs do not suit it: says why.
using CustomLayerFactory =
    std::function<absl::StatusOr<std::unique_ptr<const Layer>>(
        const job::CustomLayer& spec, absl::Span<const LayerInput> inputs)>;

// Makes a layer known to this program as `type`, at namespace scope of the file
// that has the layer:
//
//   const CustomLayerRegistration kRegistration("maxout", MakeMaxout);
//
// Two layers of one type are a bug. For before main() only.
class CustomLayerRegistration {
 public:
  CustomLayerRegistration(absl::string_view type, CustomLayerFactory factory);
};

// The layer that `spec` declares, whether or not this program has its code: if
// it has, the code's layer is checked against the declaration, otherwise
// NewPass() is FailedPrecondition.
//   InvalidArgument  the declaration is not complete, or the code's layer is
//                    another: says where.
absl::StatusOr<std::unique_ptr<const Layer>> MakeCustom(
    const job::CustomLayer& spec, absl::Span<const LayerInput> inputs);

// That this program has the code of all custom layers of `model`.
//   FailedPrecondition  it has not: names layer and type, and what to do.
absl::Status CheckCustomLayers(const job::Model& model);

// The value of a parameter; `fallback` if it is not there.
absl::string_view ParameterOf(const job::CustomLayer& spec,
                              absl::string_view name,
                              absl::string_view fallback = "");

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_CUSTOM_LAYER_H_
