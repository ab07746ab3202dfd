#ifndef PARASOL_TOOL_CHECKPOINT_TABLE_DIFFERENCE_H_
#define PARASOL_TOOL_CHECKPOINT_TABLE_DIFFERENCE_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/checkpoint_reader.h"
#include "tool/checkpoint/checkpoint_difference.h"

namespace parasol {

// Returns the absolute difference of two elements: 0 if they are equal as
// numbers or both NaN, infinity where only one of them is NaN.
double DifferenceOf(float a, float b);

// Compares the rows of a table that both checkpoints have with rows of one
// size. Reads each checkpoint as often as A's rows have `row_bytes`.
absl::StatusOr<TableDifference> CompareTable(const CheckpointReader& a,
                                             const CheckpointReader& b,
                                             absl::string_view table,
                                             size_t row_bytes);

}  // namespace parasol

#endif  // PARASOL_TOOL_CHECKPOINT_TABLE_DIFFERENCE_H_
