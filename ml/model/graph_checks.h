#ifndef PARASOL_ML_MODEL_GRAPH_CHECKS_H_
#define PARASOL_ML_MODEL_GRAPH_CHECKS_H_

#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ml/layer/layer.h"
#include "proto/job.pb.h"

namespace parasol {

// Largest number of elements of one variable, and of one example between two
// layers: cuBLAS counts in int.
inline constexpr int64_t kMaxGraphElements =
    std::numeric_limits<int32_t>::max();

// Checks that all axes of `shape` are positive and their product is at most
// kMaxGraphElements.
//   InvalidArgument  otherwise; the message has the shape.
absl::Status CheckGraphShape(absl::Span<const int64_t> shape);

// Checks the name of an input or a layer.
//   InvalidArgument  it is too long, empty, or has another character than those
//                    that names have.
absl::Status CheckGraphName(absl::string_view name);

// Checks whether and how a layer is trained; `table` is the one it reads, or
// empty.
//   InvalidArgument  names the field.
absl::Status CheckLayerTraining(const job::Layer& layer,
                                absl::string_view table);

// Checks that a layer with an optimizer has something for it to train.
//   InvalidArgument  it has no variables that are trained.
absl::Status CheckLayerOptimizer(const job::Layer& spec, const Layer& layer);

// Checks a factor of L2 terms.
//   InvalidArgument  it is not a number from 0.
absl::Status CheckL2(double l2);

// Returns what layers see of a model's input: the shape of a tensor, or the
// number of ids. A sequence of ids has its steps as a shape.
//   InvalidArgument  the input has no kind, or its shape is not known or too
//                    large.
absl::StatusOr<LayerInput> ResolveModelInput(const job::ModelInput& input);

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_GRAPH_CHECKS_H_
