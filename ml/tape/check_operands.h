#ifndef PARASOL_ML_TAPE_CHECK_OPERANDS_H_
#define PARASOL_ML_TAPE_CHECK_OPERANDS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ml/tape/operation.h"

// Checks that kinds make of their operands.
namespace parasol {

// Returns OK if input i is of this dtype.
//   InvalidArgument  "input 1 is int64; it must be float32".
absl::Status CheckDType(const OperationCall& call, int i, DType dtype);
// Checks that all inputs are float32.
absl::Status CheckFloats(const OperationCall& call);

// Returns the place of an axis of a tensor with `rank` axes; -1 is the last.
//   InvalidArgument  there is no such axis.
absl::StatusOr<int> AxisOf(int64_t axis, int rank);

// Returns the type of input 0, float32: a kind's `type` for functions of
// elements.
absl::StatusOr<TensorType> TypeOfInput(const OperationCall& call);

}  // namespace parasol

#endif  // PARASOL_ML_TAPE_CHECK_OPERANDS_H_
