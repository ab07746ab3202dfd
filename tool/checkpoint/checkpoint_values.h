#ifndef PARASOL_TOOL_CHECKPOINT_CHECKPOINT_VALUES_H_
#define PARASOL_TOOL_CHECKPOINT_CHECKPOINT_VALUES_H_

#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/checkpoint.pb.h"
#include "storage/checkpoint_reader.h"

// The values of a checkpoint, piece by piece: no function here needs more
// memory for a larger model.
namespace parasol {

// Number of elements that are in memory at a time.
inline constexpr size_t kPieceElements = 1 << 18;

// Returns the number of a variable's elements.
//   DataLoss  the shape is no possible one.
absl::StatusOr<int64_t> ElementsOf(const durable::CheckpointVariable& variable);

// Function that takes elements from number `first` on, valid only during the
// call. An error ends the reading.
using ElementsVisit = absl::FunctionRef<absl::Status(
    int64_t first, absl::Span<const float> values)>;

// Calls `visit` with all elements of one array of the variable, in order, at
// most kPieceElements at a time. Returns the largest number of updates that
// elements have had. Fails as ElementsOf() and `visit` do, and with
//   DataLoss  the checkpoint lacks elements, or was altered.
absl::StatusOr<int64_t> VisitElements(
    const CheckpointReader& checkpoint,
    const durable::CheckpointVariable& variable, int array,
    ElementsVisit visit);

}  // namespace parasol

#endif  // PARASOL_TOOL_CHECKPOINT_CHECKPOINT_VALUES_H_
