#ifndef PARASOL_ML_LAYER_CUSTOM_LAYER_H_
#define PARASOL_ML_LAYER_CUSTOM_LAYER_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ml/layer/layer.h"
#include "ml/layer/layer_kind.h"
#include "proto/job.pb.h"

// Layers that users write (docs/examples/custom_model). The job file declares a
// custom layer's output and variables, so that chief and launcher need none of
// the user's code. The programs that compute, worker, evaluator and the tool
// `parasol`, are linked with it.
namespace parasol {

// A function that makes the layer for these inputs. Its output shape and the
// names and shapes of its variables must equal the ones that `spec` declares;
// the variables' initializers are taken from the declaration.
//   InvalidArgument  the parameters or the inputs do not suit it: says why.
using CustomLayerFactory =
    std::function<absl::StatusOr<std::unique_ptr<const Layer>>(
        const job::CustomLayer& spec, absl::Span<const LayerInput> inputs)>;

// Registers a layer in this program as `type`, at namespace scope of the
// layer's own file:
//
//   const CustomLayerRegistration kRegistration("maxout", MakeMaxout);
//
// Two layers of one type are a bug. Only for use before main().
class CustomLayerRegistration {
 public:
  CustomLayerRegistration(absl::string_view type, CustomLayerFactory factory);
};

// Returns the layer that `spec` declares, whether or not this program has its
// code. If it has, the code's layer is checked against the declaration,
// otherwise NewPass() returns FailedPrecondition.
//   InvalidArgument  the declaration is not complete, or the code's layer
//                    differs from it: says where.
absl::StatusOr<std::unique_ptr<const Layer>> MakeCustom(
    const job::CustomLayer& spec, absl::Span<const LayerInput> inputs);

// Returns the value of a parameter, or `fallback` if it is not there.
absl::string_view ParameterOf(const job::CustomLayer& spec,
                              absl::string_view name,
                              absl::string_view fallback = "");

// The kind "custom" of a job's layers.
extern const LayerKind kCustomKind;

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_CUSTOM_LAYER_H_
