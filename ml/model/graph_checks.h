#ifndef PARASOL_ML_MODEL_GRAPH_CHECKS_H_
#define PARASOL_ML_MODEL_GRAPH_CHECKS_H_

#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
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

// Checks a factor of L2 terms.
//   InvalidArgument  it is not a number from 0.
absl::Status CheckL2(double l2);

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_GRAPH_CHECKS_H_
